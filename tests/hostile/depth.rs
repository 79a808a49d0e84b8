//! Declarations that nest thousands of levels deep: an error at their place, and no overflow of the stack.

use crate::support::Project;

/// What `plan` prints for a project with this file and this program.
fn planned(file: &str, jq: &str) -> (i32, String) {
    let stage = format!(
        "[step]\njq = '{jq}'\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    );
    let project = Project::new(&[("milepost.toml", file), ("stages/1_make.toml", &stage)]);
    project.milepost(&["plan"])
}

#[test]
fn toml_that_is_nested_too_deeply_is_an_error() {
    for (open, close) in [("[", "]"), ("{a=", "}"), ("[", "")] {
        let file = format!(
            "name = \"deep\"\nx = {}1{}\n",
            open.repeat(40_000),
            close.repeat(40_000)
        );
        let (code, said) = planned(&file, "1");
        assert_eq!(code, 4, "{said}");
        assert!(said.contains("this is not TOML: "), "{said}");
    }
}

#[test]
fn a_program_that_is_nested_too_deeply_is_an_error() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("1 | ", ""),
        ("-", ""),
        ("1 + ", ""),
        ("def f: ", "; 1"),
    ] {
        let jq = format!("{}1{}", open.repeat(40_000), close.repeat(40_000));
        let (code, said) = planned("name = \"deep\"\n", &jq);
        assert_eq!(code, 4, "{said}");
        assert!(
            said.contains("error: `jq`: the program is nested too deeply"),
            "{said}"
        );
        assert!(said.contains("stages/1_make.toml:2:"), "{said}");
    }
}
