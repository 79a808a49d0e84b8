//! Commands that are one string: whatever values hold, the shell takes them for words.

use crate::support::Project;

const STAGE: &str = r#"[each.note]
path = "inputs/notes/*"

[step]
command = COMMAND

[outputs]
copy = { path = "outputs/{{ note.stem }}.out", schema = false }
"#;

fn fixture(command: &str) -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"notes\"\n[env]\nWHO = \"$(touch ../../../../../../who)\"\n",
        ),
        ("stages/1_copy.toml", &STAGE.replace("COMMAND", command)),
    ])
}

/// Names that a shell would not leave alone.
const NAMES: [&str; 12] = [
    "$(touch ..|touch pwned).txt",
    "x$(touch ${PWD%%.milepost*}pwned).txt",
    "`touch pwned`.txt",
    "a b  c.txt",
    "it's.txt",
    "\"quoted\".txt",
    "-rf",
    "*",
    "~",
    "; exit 3 #.txt",
    "a&b|c>d<e.txt",
    "{é,ü}.txt",
];

#[test]
fn names_are_words_whatever_is_in_them() {
    for command in [
        "'cp {{ note.path }} {{ paths.copy }}'",
        "'cp \"{{ note.path }}\" {{ paths.copy }}'",
        r#"["sh", "-c", "cp {{ note.path }} {{ paths.copy }}"]"#,
        r#"["bash", "-eu", "-c", "f={{ note.path }}; cp \"$f\" '{{ paths.copy }}'"]"#,
    ] {
        let project = fixture(command);
        for (number, name) in NAMES.iter().enumerate() {
            project.write(
                &format!("workspace/inputs/notes/{name}"),
                number.to_string(),
            );
        }
        let ran = project.run(&[]);
        assert_eq!(ran.code, 0, "{command}: {}", ran.output);
        let outputs = project.list("outputs");
        let mut copied: Vec<usize> = outputs
            .iter()
            .map(|name| {
                project
                    .read(&format!("workspace/outputs/{name}"))
                    .parse()
                    .unwrap()
            })
            .collect();
        copied.sort_unstable();
        assert_eq!(copied, (0..NAMES.len()).collect::<Vec<_>>(), "{command}");
        for entry in walkdir::WalkDir::new(project.at("")) {
            assert_ne!(entry.unwrap().file_name(), "pwned", "{command}");
        }
    }
}

#[test]
fn a_value_inside_quotes_is_refused_with_its_place_and_the_way_out() {
    let project =
        fixture("'sh -c \"cp {{ note.path }} x\" && echo {{ note.stem }} > {{ paths.copy }}'");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("stages/1_copy.toml:5:22")
            && said.contains("`{{ }}` is inside a quoted text, where a value cannot become a quoted word")
            && said.contains("Milepost quotes the value; for a longer text assign it first: `name={{ … }}; … \"$name\"`"),
        "{said}"
    );
    project.edit("stages/1_copy.toml", "'sh -c", "[\"bash\", \"-c\", 'sh -c");
    project.edit("stages/1_copy.toml", "paths.copy }}'", "paths.copy }}']");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("stages/1_copy.toml:5:37"), "{said}");
}

#[test]
fn what_an_agent_or_a_service_is_started_with_is_held_to_the_same() {
    let project = fixture("'cp {{ note.path }} {{ paths.copy }}'");
    project.write(
        "milepost.toml",
        "name = \"notes\"\n[env]\nWHO = \"x\"\n[services.s]\ncommand = 'serve \"for {{ env.WHO }}\"'\nready = \"http://localhost:1\"\n\
         [agents.a]\ncli = [\"sh\", \"-c\", 'ask \"{{ prompt }}\"']\n",
    );
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("milepost.toml:5:23") && said.contains("inside a quoted text"),
        "{said}"
    );
    assert!(
        said.contains("milepost.toml:8:") && said.contains("`{{ prompt }}` is part of a script"),
        "{said}"
    );
}

#[test]
fn a_long_list_is_handed_over_as_a_file() {
    let stage = r#"[inputs]
parts = "inputs/parts/*.txt"

[[step]]
command = COMMAND
out = "all"

[outputs]
all = { path = "outputs/all.txt", schema = false }
"#;
    let with = |command: &str| {
        let project = Project::new(&[
            ("milepost.toml", "name = \"parts\"\n"),
            ("stages/1_join.toml", &stage.replace("COMMAND", command)),
        ]);
        let name = "n".repeat(200);
        for number in 0..800 {
            project.write(
                &format!("workspace/inputs/parts/{number:03} {name}.txt"),
                format!("{number}\n"),
            );
        }
        project
    };
    let numbers: String = (0..800).map(|number| format!("{number}\n")).collect();

    let project = with("'cat {{ paths.parts }} > {{ paths.all }}'");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(
        ran.output.contains("longer than the system allows; hand a long list over as a file: `{{ paths.NAME | as_file }}`"),
        "{}",
        ran.output
    );

    for command in [
        "'while read -r part; do cat \"$part\"; done < {{ paths.parts | as_file }} > {{ paths.all }}'",
        "'xargs -0 cat < {{ paths.parts | as_file(nul=true) }} > {{ paths.all }}'",
        r#"["sh", "-c", 'xargs -d "\n" cat < "${1#--from=}" > "$2"', "join", "--from={{ paths.parts | as_file }}", "{{ paths.all }}"]"#,
    ] {
        let project = with(command);
        let ran = project.run(&[]);
        assert_eq!(ran.code, 0, "{command}: {}", ran.output);
        assert_eq!(
            project.read("workspace/outputs/all.txt"),
            numbers,
            "{command}"
        );
        assert_eq!(project.list("outputs"), ["all.txt"], "{command}");
    }

    // What ends a line cannot stand in one.
    let project = with(r#"'cp {{ ["a\nb"] | as_file }} {{ paths.all }}'"#);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(
        ran.output.contains("write `as_file(nul=true)`"),
        "{}",
        ran.output
    );

    project.write(
        "stages/1_join.toml",
        stage.replace("command = COMMAND", "render = \"page.md\""),
    );
    project.write("page.md", "{{ paths.parts | as_file }}");
    let ran = project.run(&[]);
    assert!(
        ran.output
            .contains("`as_file` writes a file for a program: it can be used in `command` only"),
        "{}",
        ran.output
    );
}

/// How a script ends: the exit code of the run, the message of the failure, and the output.
fn outcome(script: &str) -> (i32, String, Option<String>) {
    let project = fixture(&format!("'''\n{script}\n'''"));
    project.write("workspace/inputs/notes/a.txt", "b\na\n");
    let ran = project.run(&[]);
    let failed = ran
        .records
        .iter()
        .find(|record| record["kind"] == "batch_failed");
    let message = failed.map_or("", |failed| {
        failed["data"]["outcome"]["message"].as_str().unwrap()
    });
    let made = project.exists("workspace/outputs/a.out");
    let made = made.then(|| project.read("workspace/outputs/a.out"));
    (ran.code, message.to_owned(), made)
}

#[test]
fn the_first_failing_command_of_a_script_ends_it() {
    let failed = |code: i32| (1, format!("`sh` ended with exit code {code}"), None);
    let made = |text: &str| (0, String::new(), Some(text.to_owned()));
    for (script, expected) in [
        ("sort {{ note.path }} > {{ paths.copy }}", made("a\nb\n")),
        (
            "(exit 7)\nsort {{ note.path }} > {{ paths.copy }}",
            failed(7),
        ),
        (
            "cat {{ note.path }} | sort > {{ paths.copy }}",
            made("a\nb\n"),
        ),
        (
            "(cat {{ note.path }}; exit 3) | sort > {{ paths.copy }}",
            failed(3),
        ),
        (
            "(exit 7)\ncat {{ note.path }} | sort > {{ paths.copy }}",
            failed(7),
        ),
        (
            "x=$(exit 4 | cat)\nsort {{ note.path }} > {{ paths.copy }}",
            failed(4),
        ),
        // What the script allows.
        (
            "(exit 7) || true\nsort {{ note.path }} > {{ paths.copy }}",
            made("a\nb\n"),
        ),
        (
            "set +e\n(exit 7)\nsort {{ note.path }} > {{ paths.copy }}",
            made("a\nb\n"),
        ),
        (
            "set +o pipefail\n(cat {{ note.path }}; exit 3) | sort > {{ paths.copy }}",
            made("a\nb\n"),
        ),
        (
            "if grep -q z {{ note.path }}; then exit 9; fi\nsort {{ note.path }} > {{ paths.copy }}",
            made("a\nb\n"),
        ),
    ] {
        assert_eq!(outcome(script), expected, "{script}");
    }
    let (code, message, _) = outcome("yes | head -n 1 > {{ paths.copy }}");
    assert_eq!(code, 1);
    assert_eq!(
        message,
        "`sh` ended with exit code 141: the reader of a pipe ended before its writer; if that is meant, begin the command with \
         `set +o pipefail`"
    );
}
