//! Tests that do not run: only `require!` skips a test, and each ignored test is in the list below with its reason.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

/// Tests that `cargo test` leaves out, by file and name. `.ci/run` runs those that only take long.
const IGNORED: &[(&str, &str, &str)] = &[
    (
        "tests/classification/unseen.rs",
        "rules_on_unseen_models",
        MODELS,
    ),
    ("tests/command/survivors.rs", "in_another_process", PROCESS),
    ("tests/external/crash.rs", "stopped_client", PROCESS),
    ("tests/external/leases.rs", "another_process", PROCESS),
    (
        "tests/hostile/names.rs",
        "a_placeholder_stands_for_a_file_that_cannot_be_used",
        MACOS,
    ),
    (
        "tests/hostile/names.rs",
        "an_escaped_name_takes_no_batch_from_another_file",
        MACOS,
    ),
    (
        "tests/hostile/names.rs",
        "an_optional_list_with_a_file_that_cannot_be_used_is_not_empty",
        MACOS,
    ),
    (
        "tests/hostile/names.rs",
        "files_that_no_record_can_hold_fail_their_own_batches",
        MACOS,
    ),
    (
        "tests/hostile/names.rs",
        "names_that_collide_elsewhere_are_warned_about",
        MACOS,
    ),
    (
        "tests/hostile/names.rs",
        "names_that_look_the_same_are_escaped",
        MACOS,
    ),
    (
        "tests/hostile/terminal.rs",
        "a_result_that_cannot_be_written_is_an_error",
        MACOS,
    ),
    (
        "tests/remote/slurm.rs",
        "a_job_of_slurm_that_runs_twice_is_published_once",
        LONG,
    ),
    (
        "tests/remote/slurm.rs",
        "a_lost_node_of_slurm_costs_only_what_ran_there",
        LONG,
    ),
    ("tests/store/crash.rs", "child", PROCESS),
    (
        "tests/store/files.rs",
        "reports_names_that_no_record_can_hold",
        MACOS,
    ),
];
const LONG: &str = "takes three minutes";
/// Only on macOS.
const MACOS: &str = "macOS has no such names or files";
const MODELS: &str = "the models are not part of the project";
const PROCESS: &str = "a process that other tests start";

/// A test function.
#[derive(Default)]
struct Test {
    name: String,
    /// The reason in `#[ignore = "…"]`.
    ignored: Option<String>,
    /// The lines at which it returns early. Closures may return.
    returns: Vec<usize>,
}

/// Returns the tests of a file, also those in modules and macros.
fn tests(stream: TokenStream, found: &mut Vec<Test>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut test: Option<Test> = None;
    for (at, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else {
            continue;
        };
        let before = at.checked_sub(1).map(|at| trees[at].to_string());
        let is_attribute =
            group.delimiter() == Delimiter::Bracket && before.as_deref() == Some("#");
        if is_attribute {
            let text = group.stream().to_string();
            if text == "test" {
                test.get_or_insert_default();
            } else if let Some((_, reason)) = text.split_once("ignore = \"") {
                let reason = reason.split('"').next().unwrap_or_default();
                test.get_or_insert_default().ignored = Some(reason.to_owned());
            }
        } else if group.delimiter() == Delimiter::Brace {
            match test.take() {
                Some(mut test) => {
                    let start = trees[..at]
                        .iter()
                        .rposition(|tree| tree.to_string() == "fn");
                    test.name = trees[start.unwrap() + 1].to_string();
                    returns(group.stream(), &mut test.returns);
                    found.push(test);
                }
                None => tests(group.stream(), found),
            }
        }
    }
}

/// Collects the lines of `return` outside closures and inner functions.
fn returns(stream: TokenStream, found: &mut Vec<usize>) {
    let mut is_inner = false;
    let mut last = String::new();
    for tree in stream {
        match &tree {
            TokenTree::Ident(ident) if ident == "return" => found.push(ident.span().start().line),
            TokenTree::Ident(ident) if ident == "fn" || ident == "async" => is_inner = true,
            TokenTree::Group(group) => {
                let is_body = group.delimiter() == Delimiter::Brace;
                if !(is_body && (is_inner || last == "|")) {
                    returns(group.stream(), found);
                }
                is_inner &= !is_body;
            }
            _ => {}
        }
        last = tree.to_string();
    }
}

/// Returns each violation in the Rust files below the root of the repository.
fn violations(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ignored = BTreeSet::new();
    for folder in ["tests", "src", "crates"] {
        for entry in walkdir::WalkDir::new(root.join(folder)) {
            let path = entry.unwrap().into_path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root).unwrap().to_str().unwrap();
                check(path, &text, &mut ignored, &mut found);
            }
        }
    }
    let listed = IGNORED
        .iter()
        .map(|(path, name, reason)| format!("{path}: `{name}`: {reason}"));
    let listed: BTreeSet<String> = listed.collect();
    for test in ignored.difference(&listed) {
        found.push(format!("{test}: the test is ignored; list it with its reason in tests/architecture/skipped.rs, or let it run"));
    }
    for test in listed.difference(&ignored) {
        found.push(format!("{test}: no test is ignored for this reason; remove it from the list in tests/architecture/skipped.rs"));
    }
    found
}

fn check(path: &str, text: &str, ignored: &mut BTreeSet<String>, found: &mut Vec<String>) {
    let mut all = Vec::new();
    tests(text.parse().unwrap(), &mut all);
    for test in all {
        for line in test.returns {
            found.push(format!(
                "{path}:{line}: `{}` returns early, so it passes without a test; use `require!` of tests/support/required.rs",
                test.name
            ));
        }
        if let Some(reason) = test.ignored {
            ignored.insert(format!("{path}: `{}`: {reason}", test.name));
        }
    }
    let may_report = ["tests/support/required.rs", "tests/architecture/skipped.rs"];
    for (at, line) in text.lines().enumerate() {
        if line.contains("\"skipped: ") && !may_report.contains(&path) {
            found.push(format!(
                "{path}:{}: a skipped test is reported by `require!` of tests/support/required.rs, which fails in CI",
                at + 1
            ));
        }
    }
}

#[test]
fn no_test_passes_without_a_test() {
    let found = violations(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn a_test_that_returns_early_is_reported() {
    let text = "#[test]\nfn a() {\n    let Some(x) = y() else {\n        return;\n    };\n}\n\
        mod m {\n    #[test]\n    #[ignore = \"takes long\"]\n    fn b() {\n        z(|| {\n            return;\n        });\n        fn c() {\n            return;\n        }\n    }\n}\n\
        fn d() {\n    eprintln!(\"skipped: no x\");\n    return;\n}\n";
    let (mut ignored, mut found) = (BTreeSet::new(), Vec::new());
    check("tests/x.rs", text, &mut ignored, &mut found);
    assert_eq!(
        found,
        [
            "tests/x.rs:4: `a` returns early, so it passes without a test; use `require!` of tests/support/required.rs",
            "tests/x.rs:20: a skipped test is reported by `require!` of tests/support/required.rs, which fails in CI",
        ]
    );
    assert_eq!(
        ignored.into_iter().collect::<Vec<_>>(),
        ["tests/x.rs: `b`: takes long"]
    );
}
