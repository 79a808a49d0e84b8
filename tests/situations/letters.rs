//! A small project with a step of each common kind: people are cleaned (`jq`), greeted (`command`), and joined (`jq`, `render`).

use crate::support::Project;
use std::os::unix::fs::MetadataExt as _;

pub const PROJECT: &str = r#"
name = "letters"

[params]
greeting = "Dear"

[env]
TONE = "plain"
"#;

pub const CLEAN: &str = r#"
[each.person]
path = "inputs/person_*.json"

[step]
jq = "filters/clean.jq"

[outputs]
clean = "intermediate/clean/{{ person.stem }}.json"
"#;

pub const GREET: &str = r#"
[each.person]
path = "intermediate/clean/person_*.json"

[step]
command = ["sh", "project:tools/greet.sh", "{{ person.path }}", "{{ params.greeting }}", "{{ paths.letter }}"]
env = ["TONE"]

[outputs]
letter = "intermediate/letters/{{ person.stem }}.txt"
"#;

pub const JOIN: &str = r#"
[inputs]
people = "intermediate/clean/person_*.json"
letters = "intermediate/letters/person_*.txt"

[[step]]
jq = '{ids: [.people[].id], letters: .letters}'
out = "book"

[[step]]
render = "templates/page.md"
out = "page"

[outputs]
book = { path = "outputs/book.json", schema = false }
page = "outputs/page.md"

[conserve]
in = ".people[].id"
out = ".book.ids[]"
"#;

pub const SCHEMA: &str = r#"{"type": "object", "required": ["id", "name"], "properties": {"name": {"type": "string", "maxLength": 40}}}"#;

const GREET_SH: &str = r#"
name=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' "$1")
printf '%s, %s (%s)\n' "$2" "$name" "$TONE" > "$3"
"#;

/// The project with three people, not run yet.
pub fn letters() -> Project {
    Project::new(&[
        ("milepost.toml", PROJECT),
        ("stages/1_clean.toml", CLEAN),
        ("stages/2_greet.toml", GREET),
        ("stages/3_join.toml", JOIN),
        ("schemas/clean.schema.json", SCHEMA),
        (
            "filters/clean.jq",
            ".person.data | {id, name: (.name | ascii_upcase)}",
        ),
        ("tools/greet.sh", GREET_SH),
        (
            "templates/page.md",
            "{% for letter in letters %}* {{ letter }}{% endfor %}",
        ),
        (
            "workspace/inputs/person_1.json",
            r#"{"id": 1, "name": "Ada"}"#,
        ),
        (
            "workspace/inputs/person_2.json",
            r#"{"id": 2, "name": "Bo"}"#,
        ),
        (
            "workspace/inputs/person_10.json",
            r#"{"id": 10, "name": "Cy"}"#,
        ),
    ])
}

/// The project, run once.
pub fn completed() -> Project {
    let project = letters();
    let all = [
        "clean/person_1",
        "clean/person_10",
        "clean/person_2",
        "greet/person_1",
        "greet/person_10",
        "greet/person_2",
        "join",
    ];
    project.run(&[]).expect(0, &all);
    project
}

/// The project, run until the next run only checks its notes. Its files count as an hour old.
pub fn checked() -> Project {
    let mut project = letters();
    project.env("MILEPOST_AHEAD", "3600");
    assert_eq!(project.run(&[]).code, 0);
    // What the run wrote is read once more: nobody looked at it since.
    project.run(&[]).expect(0, &[]);
    let inode = || project.at(NOTES).metadata().unwrap().ino();
    let noted = inode();
    project.run(&[]).expect(0, &[]);
    assert_eq!(inode(), noted, "the third run learnt something");
    project
}

/// The notes of the last up-to-date run.
pub const NOTES: &str = "workspace/.milepost/glance";

/// What the page says when nothing is changed.
pub const PAGE: &str = "* Dear, ADA (plain)\n* Dear, BO (plain)\n* Dear, CY (plain)\n";
