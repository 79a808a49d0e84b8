//! A command, a prompt, a rule, a schema changed: what depends on it runs again or is revalidated, and nothing else.

use super::super::letters::{PAGE, SCHEMA};
use super::super::packed::{ELEMENTS, packed};
use super::{both, matches_a_fresh_run};
use crate::support::Project;

const GREETED: [&str; 4] = [
    "greet/person_1",
    "greet/person_10",
    "greet/person_2",
    "join",
];
const CLEANED: [&str; 3] = ["clean/person_1", "clean/person_10", "clean/person_2"];
const CLASSIFIED: [&str; 3] = ["classify/batch_1", "classify/batch_2", "classify/batch_3"];

#[test]
fn command_changed() {
    both(|project| {
        project.edit(
            "stages/2_greet.toml",
            "{{ params.greeting }}",
            "{{ params.greeting }}est",
        );
        project.run(&[]).expect(0, &GREETED);
        let page = PAGE.replace("Dear", "Dearest");
        assert_eq!(project.read("workspace/outputs/page.md"), page);
        matches_a_fresh_run(project);
    });
}

#[test]
fn script_of_a_command_changed() {
    both(|project| {
        project.edit("tools/greet.sh", "%s, %s", "%s: %s");
        project.run(&[]).expect(0, &GREETED);
        matches_a_fresh_run(project);
    });
}

#[test]
fn prompt_changed_that_a_program_reads() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"ask\"\n"),
        ("prompts/ask.md", "How many?\n"),
        (
            "stages/1_ask.toml",
            r#"
[each.item]
path = "inputs/*.txt"
[step]
command = ["sh", "-c", 'cat "$0" "$1" > "$2"', "project:prompts/ask.md", "{{ item.path }}", "{{ paths.said }}"]
[outputs]
said = "intermediate/said/{{ item.stem }}.txt"
"#,
        ),
        (
            "stages/2_count.toml",
            "[each.item]\npath = \"inputs/*.txt\"\n[step]\ncommand = [\"sh\", \"-c\", 'wc -c < \"$0\" > \"$1\"', \"{{ item.path }}\", \"{{ paths.n }}\"]\n\
             [outputs]\nn = \"intermediate/counted/{{ item.stem }}.txt\"\n",
        ),
        ("workspace/inputs/a.txt", "a\n"),
        ("workspace/inputs/b.txt", "b\n"),
    ]);
    project
        .run(&[])
        .expect(0, &["ask/a", "ask/b", "count/a", "count/b"]);
    project.write_with_mtime_kept("prompts/ask.md", "How much?\n");
    project.run(&[]).expect(0, &["ask/a", "ask/b"]);
    let said = project.read("workspace/intermediate/said/b.txt");
    assert_eq!(said, "How much?\nb\n");
    matches_a_fresh_run(&project);
}

#[test]
fn prompt_changed_that_the_agent_does_not_read() {
    let project = packed(&ELEMENTS);
    assert_eq!(project.run(&[]).code, 0);
    project.edit("prompts/batch-processor.md", "\n", "\nThink twice.\n");
    project.run(&[]).expect(0, &[]);
    matches_a_fresh_run(&project);
}

#[test]
fn rule_changed() {
    let project = packed(&ELEMENTS);
    assert_eq!(project.run(&[]).code, 0);
    let rules = project.read("rules/elements.toml");
    let rule = "[[rule]]\nname = \"rail\"\nifc_type = [\"IfcRailing\"]\nanswer = { element_type = \"other\" }\nconfidence = 0.3\n\n";
    project.write(
        "rules/elements.toml",
        rules.replacen("[[rule]]", &format!("{rule}[[rule]]"), 1),
    );
    let [a, b, c] = CLASSIFIED;
    project.run(&[]).expect(0, &[a, b, c, "generate"]);
    matches_a_fresh_run(&project);
}

#[test]
fn rule_changed_that_answers_the_same() {
    let project = packed(&ELEMENTS);
    assert_eq!(project.run(&[]).code, 0);
    let rules = project.read("rules/elements.toml");
    let rule = "[[rule]]\nname = \"never\"\nifc_type = [\"IfcNever\"]\nanswer = { element_type = \"other\" }\nconfidence = 0.3\n";
    project.write("rules/elements.toml", format!("{rules}\n{rule}"));
    project.run(&[]).expect(0, &CLASSIFIED);
    matches_a_fresh_run(&project);
}

#[test]
fn rule_commented() {
    let project = packed(&ELEMENTS);
    assert_eq!(project.run(&[]).code, 0);
    let rules = project.read("rules/elements.toml");
    project.write("rules/elements.toml", format!("# More to say.\n{rules}"));
    project.run(&[]).expect(0, &[]);
    matches_a_fresh_run(&project);
}

#[test]
fn schema_changed_and_everything_holds() {
    both(|project| {
        project.write("schemas/clean.schema.json", SCHEMA.replace("40", "30"));
        let before = project.digests();
        let ran = project.run(&[]);
        ran.expect(0, &[]);
        assert_eq!(ran.judged(), CLEANED);
        let mut after = project.digests();
        // The checkpoint names the schema, and the manifest the facts.
        for own in [
            "stage_1_complete.json",
            "clean_progress.json",
            "manifests/clean/page_0001.sha256",
        ] {
            after.insert(own.to_owned(), before[own]);
        }
        assert_eq!(after, before);
        matches_a_fresh_run(project);
    });
}

#[test]
fn schema_changed_and_one_does_not_hold() {
    both(|project| {
        project.write(
            "workspace/inputs/person_2.json",
            r#"{"id": 2, "name": "Bob"}"#,
        );
        assert_eq!(project.run(&[]).code, 0);
        project.write("schemas/clean.schema.json", SCHEMA.replace("40", "2"));
        let ran = project.run(&["-k"]);
        ran.expect(1, &["clean/person_1", "clean/person_2"])
            .says("/name");
        assert_eq!(ran.judged(), ["clean/person_10"]);
        project.write("schemas/clean.schema.json", SCHEMA.replace("40", "3"));
        project
            .run_unplanned(&[])
            .expect(0, &["clean/person_1", "clean/person_2"]);
        matches_a_fresh_run(project);
    });
}
