//! Sizes: lines of a file, files of a folder, the first line of a file, names that say nothing.

use super::source::Source;
use std::collections::BTreeMap;

/// The longest that a file may be, its tests included.
const LINES: usize = 600;

/// The most Rust files that a folder may hold side by side.
const FILES: usize = 15;

const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "manager", "errors", "misc"];

/// Lines of code of each package and of all: not blank, no comment, no test. A package may not grow beyond its number. If it shrinks
/// by more than [`SLACK`], lower its number and that of all packages.
const CODE: &[(&str, usize)] = &[
    ("agents", 5368),
    ("core", 28745),
    ("engine", 44738),
    ("formats", 11010),
    ("store", 12364),
    ("milepost", 15160),
    (ALL, 117_385),
];

/// The name of the sum in [`CODE`].
const ALL: &str = "all packages";

/// How far a package may be below its number.
const SLACK: usize = 150;

/// How often the product may set a lint about the size of functions and types aside. These numbers may only shrink.
const OVERSIZED: &[(&str, usize)] = &[
    ("too_many_arguments", 13),
    ("too_many_lines", 15),
    ("type_complexity", 19),
];

pub fn check_lints(sources: &[Source], found: &mut Vec<String>) {
    for (lint, limit) in OVERSIZED {
        let words = ["clippy", ":", ":", lint];
        let count: usize = sources
            .iter()
            .map(|source| source.find(&words).count())
            .sum();
        if count > *limit {
            found.push(format!(
                "clippy::{lint} is set aside {count} times, at most {limit}; split the function or name the type instead"
            ));
        } else if count < *limit {
            found.push(format!(
                "clippy::{lint} is set aside {count} times, {limit} allowed; lower the number in tests/architecture/sizes.rs to {count}"
            ));
        }
    }
}

/// Returns the lines of code of each package in the order of [`CODE`].
pub fn code(sources: &[Source]) -> Vec<(&'static str, usize)> {
    let lines = |package: &str| {
        let is_in = |source: &&Source| match source.package.strip_prefix("crates/") {
            Some(name) => package == name || package == ALL,
            None => package == "milepost" || package == ALL,
        };
        let of_package = sources.iter().filter(is_in);
        of_package.map(Source::lines_of_code).sum()
    };
    CODE.iter().map(|(name, _)| (*name, lines(name))).collect()
}

pub fn check_code(found: &[(&str, usize)], violations: &mut Vec<String>) {
    compare(CODE, found, violations);
}

fn compare(limits: &[(&str, usize)], found: &[(&str, usize)], violations: &mut Vec<String>) {
    for ((name, limit), (_, lines)) in limits.iter().zip(found) {
        if lines > limit {
            violations.push(format!(
                "{name}: {lines} lines of code, at most {limit}; remove as many as you add, or raise the number in \
                 tests/architecture/sizes.rs and give the reason in the commit"
            ));
        } else if lines + SLACK < *limit {
            violations.push(format!(
                "{name}: {lines} lines of code, {limit} allowed; lower the number in tests/architecture/sizes.rs to {lines}"
            ));
        }
    }
}

#[test]
fn a_package_neither_grows_nor_shrinks_unnoticed() {
    let limits = [("a", 1000), ("b", 1000), ("c", 1000), (ALL, 3000)];
    let found = [("a", 1001), ("b", 849), ("c", 850), (ALL, 2700)];
    let mut violations = Vec::new();
    compare(&limits, &found, &mut violations);
    assert_eq!(
        violations,
        [
            "a: 1001 lines of code, at most 1000; remove as many as you add, or raise the number in tests/architecture/sizes.rs and give the reason in the commit",
            "b: 849 lines of code, 1000 allowed; lower the number in tests/architecture/sizes.rs to 849",
            "all packages: 2700 lines of code, 3000 allowed; lower the number in tests/architecture/sizes.rs to 2700",
        ]
    );
}

#[test]
fn a_line_of_code_is_neither_blank_nor_comment_nor_test() {
    let text = "//! One.\n\n/// Two.\nfn two() { // two\n    /* no\n    code */\n    let text = \"a\n\n// b\";\n}\n\n\
        #[cfg(test)]\nmod tests {\n    fn no() {}\n}\n#[derive(Debug)]\nstruct Three;\n";
    let source = Source::parse("src/two.rs", text);
    // `fn two`, two lines of its text, its end, the attribute, the structure.
    assert_eq!(source.lines_of_code(), 6);
    let expected = [0, 0, 0, 0, 0, 6, 6];
    let found = code(&[source]);
    assert!(
        found.iter().map(|(_, lines)| *lines).eq(expected),
        "{found:?}"
    );
}

pub fn check_file(source: &Source, found: &mut Vec<String>) {
    let path = &source.path;
    for part in &source.module {
        if EMPTY_NAMES.contains(&part.as_str()) {
            found.push(format!(
                "{path}:1: `{part}` says nothing; name the file after its one idea, and keep errors beside their code"
            ));
        }
    }
    if !source
        .lines
        .first()
        .is_some_and(|line| line.starts_with("//! "))
    {
        found.push(format!(
            "{path}:1: the first line must be `//! ` and what the file holds"
        ));
    }
    let lines = source.lines.len();
    if lines > LINES {
        found.push(format!(
            "{path}:{LINES}: {lines} lines, at most {LINES}; split the file by its ideas"
        ));
    }
}

pub fn check_folders(sources: &[Source], found: &mut Vec<String>) {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        *folders
            .entry(source.path.rsplit_once('/').unwrap().0)
            .or_default() += 1;
    }
    for (folder, files) in folders {
        if files > FILES {
            found.push(format!(
                "{folder}: {files} files side by side, at most {FILES}; group them in folders that say why"
            ));
        }
    }
}
