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

fn check(name: &str, text: &str) {
    let (given, says) = text.split_once("=== says\n").unwrap_or((text, ""));
    let mut files = project();
    for (name, text) in sections(given) {
        files = files.with(&name, &text);
    }
    let wrong = files.wrong();
    if option_env!("BLESS").is_some() {
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
    agents
    columns
    keys
    types
    missing
    references
    jq
    templates
    places
    readers
    names
    syntax
    outside
    params
    refine
    picked
    quotes
    unfinished
    filters
    order
    files
);
