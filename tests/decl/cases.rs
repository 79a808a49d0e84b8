//! Wrong declarations and the whole of what is said about them. Each file in `cases/` is a project that differs from
//! `_project.txt` in the files it names, and below `=== says` the text. `BLESS=1 cargo test` writes that text anew.

use super::Files;
use std::path::PathBuf;

fn sections(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("=== ") {
            Some(name) => found.push((name.trim_end().to_owned(), String::new())),
            None => {
                if let Some((_, body)) = found.last_mut() {
                    body.push_str(line);
                }
            }
        }
    }
    found
}

/// The project that the cases differ from.
pub fn project() -> Files {
    let mut files = Files::default();
    for (name, text) in sections(include_str!("cases/_project.txt")) {
        files = files.with(&name, &text);
    }
    files
}

#[test]
fn the_project_of_the_cases_is_right() {
    assert_eq!(project().wrong(), "nothing is wrong\n");
}

#[test]
fn an_argument_that_is_the_name_of_a_file_is_a_warning() {
    let files = project().with("data/a.toml", "").with(
        "stages/1_parse.toml",
        "[step]\ncommand = [\"cp\", \"data/a.toml\", \"tools\", \"{{ paths.parsed }}\"]\n\n[outputs]\nparsed = { path = \"intermediate/parsed.json\", schema = false }\n",
    );
    let (_, warnings) = files.load().unwrap();
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "stages/1_parse.toml:2:18: `data/a.toml` is a file of the project, and the command runs in a scratch folder without it (write \"project:data/a.toml\")"
        ]
    );
}

#[test]
fn a_stage_in_another_format_is_a_warning_or_the_only_stage() {
    let files = project().with("stages/7_mail.yaml", "");
    let (_, warnings) = files.load().unwrap();
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let said = "stages/7_mail.yaml:1:1: `stages/7_mail.yaml` is ignored: a stage is a TOML file that ends in `.toml` (if it is meant as a stage, write it as `stages/7_mail.toml`)";
    assert_eq!(texts, [said]);
    let alone = Files::of([
        ("milepost.toml", "name = \"x\"\n"),
        ("stages/7_mail.yaml", ""),
    ]);
    let problems = alone.load().unwrap_err();
    assert_eq!(
        problems.0.last().map(ToString::to_string).as_deref(),
        Some(said)
    );
}

fn check(name: &str, text: &str) {
    let (given, says) = text.split_once("=== says\n").unwrap_or((text, ""));
    let mut files = project();
    for (name, text) in sections(given) {
        files = files.with(&name, &text);
    }
    let wrong = files.wrong();
    if std::env::var_os("BLESS").is_some() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/decl/cases")
            .join(name)
            .with_extension("txt");
        let given = if given.ends_with('\n') {
            given.to_owned()
        } else {
            format!("{given}\n")
        };
        std::fs::write(path, format!("{given}=== says\n{wrong}")).unwrap();
        return;
    }
    assert_eq!(says, wrong, "{name}");
}

macro_rules! cases {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name), include_str!(concat!("cases/", stringify!($name), ".txt"))); })*
    };
}
cases!(
    approve
    agents
    columns
    defaults
    each
    executors
    executor_commands
    keys
    types
    missing
    references
    jq
    templates
    places
    readers
    names
    nested
    syntax
    outside
    params
    refine
    picked
    quotes
    unfinished
    filters
    include
    order
    files
    relative
);
