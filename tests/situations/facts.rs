//! What batches depend on beside inputs and arguments: files that their programs read, and loops whose length is a template.

use crate::support::Project;
use serde_json::Value;

/// The reasons of a stage's batches, as `plan` says them, each once.
fn reasons(project: &Project, stage: &str) -> Vec<String> {
    let (_, said) = project.milepost(&["plan", stage]);
    let lines = said
        .lines()
        .map(str::trim)
        .filter(|line| line.contains(" changed"));
    lines.map(str::to_owned).collect()
}

fn helped() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"helped\"\n"),
        (
            "stages/2_words.toml",
            "[each.note]\npath = \"inputs/*.txt\"\n[[step]]\ncommand = [\"sh\", \"project:tools/run.sh\", \"{{ note.path }}\", \"{{ paths.words }}\"]\n\
             reads = [\"project:tools/**/*.lib\", \"words/*.txt\"]\n[outputs]\nwords = { path = \"outputs/{{ note.stem }}.txt\", schema = false }\n",
        ),
        (
            "tools/run.sh",
            ". \"${0%/*}/deep/er/help.lib\"\nhelp < \"$1\" > \"$2\"\n",
        ),
        ("tools/deep/er/help.lib", "help() { tr a-z A-Z; }\n"),
        ("tools/deep/note.md", "no part of it\n"),
        ("workspace/inputs/a.txt", "a\n"),
        ("workspace/inputs/b.txt", "b\n"),
        (
            "stages/1_list.toml",
            "[[step]]\njq = '\"w\"'\nout = \"list\"\n[outputs]\nlist = { path = \"words/w.txt\", schema = false }\n",
        ),
    ])
}

#[test]
fn what_a_program_reads_beside_its_arguments_is_a_fact() {
    let project = helped();
    project.run(&[]).expect(0, &["list", "words/a", "words/b"]);
    assert_eq!(project.read("workspace/outputs/a.txt"), "A\n");
    project.run(&[]).expect(0, &[]);
    // A run that has nothing to do goes by the notes of the one before.
    project.run(&[]).expect(0, &[]);

    project.write("tools/deep/er/help.lib", "help() { sed s/^/-/; }\n");
    let told = reasons(&project, "words");
    assert!(
        matches!(told.as_slice(), [reason] if reason.starts_with("input project:tools/deep/er/help.lib changed (")),
        "{told:?}"
    );
    project.run(&[]).expect(0, &["words/a", "words/b"]);
    assert_eq!(project.read("workspace/outputs/a.txt"), "-a\n");

    project.write("tools/deep/note.md", "changed\n");
    project.run(&[]).expect(0, &[]);
    project.write("tools/new.lib", "# One more.\n");
    project.run(&[]).expect(0, &["words/a", "words/b"]);
    project.run(&[]).expect(0, &[]);
    project.remove("tools/new.lib");
    project.run(&[]).expect(0, &["words/a", "words/b"]);

    // What an earlier stage makes is read when it is made.
    project.edit("stages/1_list.toml", "\"w\"", "\"v\"");
    project.run(&[]).expect(0, &["list", "words/a", "words/b"]);
    project.run(&[]).expect(0, &[]);
    assert_eq!(project.read("workspace/words/w.txt"), "v");
}

#[test]
fn another_template_of_the_number_of_rounds_is_another_declaration() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"rounds\"\n[params]\nfew = 2\nmany = 3\n",
        ),
        (
            "stages/1_count.toml",
            "[refine]\nuntil = \"false\"\nmax_iterations = \"{{ params.few }}\"\notherwise = \"best\"\nscore = \"$iteration\"\n\
             [[step]]\njq = '$iteration'\nout = \"count\"\n[outputs]\ncount = { path = \"outputs/count.json\", schema = false }\n",
        ),
    ]);
    project.run(&[]).expect(0, &["count"]);
    assert_eq!(project.json("workspace/outputs/count.json"), Value::from(2));
    project.edit("stages/1_count.toml", "params.few", "params.many");
    project.edit("milepost.toml", "many = 3", "many = 2");
    let told = reasons(&project, "count");
    assert_eq!(
        told,
        ["refine.max_iterations changed: {{ params.few }} → {{ params.many }}"]
    );
    project.run(&[]).expect(0, &["count"]);
}

#[test]
fn a_parameter_that_a_plain_path_names_is_a_fact() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"ordered\"\n[params]\norder = { type = \"list\", default = [\"b\", \"a\"] }\n",
        ),
        (
            "stages/1_join.toml",
            "[inputs]\nrecords = \"inputs/records.json\"\n[step]\nmerge = \".records[]\"\nkey = \".key\"\norder = \".params.order[]\"\n\
             [outputs]\njoined = { path = \"outputs/joined.json\", schema = false }\n",
        ),
        (
            "workspace/inputs/records.json",
            "[{\"key\": \"a\"}, {\"key\": \"b\"}]\n",
        ),
    ]);
    let keys = || {
        let joined = project.json("workspace/outputs/joined.json");
        let elements = joined["elements"].as_array().unwrap().iter();
        elements
            .map(|element| element["key"].clone())
            .collect::<Vec<_>>()
    };
    project.run(&[]).expect(0, &["join"]);
    assert_eq!(keys(), ["b", "a"]);
    project.run(&[]).expect(0, &[]);
    project.edit("milepost.toml", "[\"b\", \"a\"]", "[\"a\", \"b\"]");
    project.run(&[]).expect(0, &["join"]);
    assert_eq!(keys(), ["a", "b"]);
}
