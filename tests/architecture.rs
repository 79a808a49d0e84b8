//! The rules of the house, enforced by reading `src/`: imports, purity, length, first lines, names, printing, `unsafe`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A layer: its name, whether it is pure, and the layers it may import. `docs/design.md` says why.
type Layer = (&'static str, bool, &'static [&'static str]);

const LAYERS: &[Layer] = &[
    ("base", true, &[]),
    ("expr", true, &["base"]),
    ("model", true, &["base", "expr"]),
    ("decl", true, &["base", "expr", "model"]),
    ("plan", true, &["base", "expr", "model"]),
    ("store", false, &["base", "expr", "model"]),
    ("check", false, &["base", "expr", "model"]),
    ("agents", false, &["base", "expr", "model"]),
    (
        "steps",
        false,
        &["base", "expr", "model", "check", "agents"],
    ),
    (
        "run",
        false,
        &["base", "expr", "model", "plan", "store", "check", "steps"],
    ),
    (
        "ops",
        false,
        &[
            "base", "expr", "model", "decl", "plan", "store", "check", "run",
        ],
    ),
    ("view", true, &["base", "expr", "model", "ops"]),
    ("mcp", false, &["base", "expr", "model", "ops", "view"]),
    ("watch", false, &["base", "expr", "model", "ops", "view"]),
    (
        "cli",
        false,
        &["base", "expr", "model", "ops", "view", "mcp", "watch"],
    ),
];

/// What pure layers do not see: a path, and who does it for them.
const IMPURE: &[(&str, &str)] = &[
    (
        "std::fs",
        "take a `base::source` trait, or do it in `store`",
    ),
    ("std::process", "start programs in `steps::command`"),
    (
        "std::env",
        "read settings in `cli` and hand them on as values",
    ),
    ("std::net", "talk to the network in `agents`"),
    (
        "SystemTime",
        "take the time as a value or by the trait `Clock`",
    ),
    (
        "Instant::now",
        "take the time as a value or by the trait `Clock`",
    ),
    (
        "Timestamp::now",
        "take the time as a value or by the trait `Clock`",
    ),
    (
        "Zoned::now",
        "take the time as a value or by the trait `Clock`",
    ),
];

const PRINTING: &[&str] = &[
    "println!",
    "print!",
    "eprintln!",
    "eprint!",
    "dbg!",
    "io::stdout",
    "io::stderr",
];

/// The longest that a file may be, tests in it included.
const LINES: usize = 600;
const MAPS_FILES: &str = "steps/ifc/map.rs";

#[test]
fn the_house_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found = violations(&root);
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Every violation under that `src` folder, as `file:line: what is wrong; what to do`, in the order of the files.
fn violations(root: &Path) -> Vec<String> {
    let files = sources(root);
    let texts: Vec<(String, String)> = files
        .iter()
        .map(|file| {
            let name = file
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            (name, std::fs::read_to_string(file).unwrap())
        })
        .collect();
    let tests: BTreeSet<String> = texts
        .iter()
        .flat_map(|(name, text)| test_files(name, text))
        .collect();
    let mut found = Vec::new();
    for (name, text) in &texts {
        let mut report = |line: usize, message: String| {
            found.push(format!("src/{name}:{line}: {message}"));
        };
        form(name, text, &mut report);
        if !tests
            .iter()
            .any(|test| name == test || in_folder(name, test))
        {
            content(name, &without_tests(text), &mut report);
        }
    }
    found
}

/// What holds for every file, tests too: its layer, its name, its first line, its length.
fn form(name: &str, text: &str, report: &mut dyn FnMut(usize, String)) {
    let layer = layer_of(name);
    let entry = matches!(name, "lib.rs" | "main.rs");
    if !entry && !LAYERS.iter().any(|row| row.0 == layer) {
        report(
            1,
            format!(
                "`{layer}` is no layer; put the file into one of those in tests/architecture.rs"
            ),
        );
    }
    for part in name.trim_end_matches(".rs").split('/') {
        if matches!(
            part,
            "utils" | "util" | "helpers" | "manager" | "errors" | "misc"
        ) {
            report(
                1,
                format!(
                    "`{part}` names no idea; name what the file holds, and keep errors beside their code"
                ),
            );
        }
    }
    if !text
        .lines()
        .next()
        .is_some_and(|line| line.starts_with("//! "))
    {
        report(
            1,
            "the first line says nothing; begin with `//! ` and what the file holds".to_owned(),
        );
    }
    let lines = text.lines().count();
    if lines > LINES {
        report(
            LINES + 1,
            format!("{lines} lines, at most {LINES}; split the file by its ideas"),
        );
    }
}

/// What holds for code that is shipped: imports, purity, printing, `unsafe`.
fn content(name: &str, text: &str, report: &mut dyn FnMut(usize, String)) {
    let layer = layer_of(name);
    let row = LAYERS.iter().find(|row| row.0 == layer);
    let mut seen = BTreeSet::new();
    if let Some((_, _, allowed)) = row {
        for (line, other) in heads(text, "crate") {
            let is_layer = LAYERS.iter().any(|row| row.0 == other);
            if is_layer
                && other != layer
                && !allowed.contains(&other.as_str())
                && seen.insert((line, other.clone()))
            {
                let mut message = format!("`{layer}` imports `{other}`");
                let _ = match allowed.join("`, `") {
                    none if none.is_empty() => write!(message, ", but imports nothing"),
                    some => write!(message, ", but may import only `{some}`"),
                };
                report(
                    line,
                    message
                        + "; move what is shared up the table, or hand it in as a value or trait",
                );
            }
        }
        let depth = depth_of(name);
        for (line, code) in text.lines().enumerate() {
            if code.contains(&"super::".repeat(depth)) {
                report(
                    line + 1,
                    "`super` leaves the layer; write `crate::`, so that the import can be seen"
                        .to_owned(),
                );
            }
        }
    }
    let pure = row.is_some_and(|row| row.1);
    for (path, instead) in IMPURE.iter().filter(|_| pure) {
        for line in uses(text, path) {
            report(
                line,
                format!("`{layer}` is pure, but uses `{path}`; {instead}"),
            );
        }
    }
    if layer != "cli" && name != "main.rs" {
        for printing in PRINTING {
            for line in uses(text, printing) {
                report(
                    line,
                    format!("`{printing}` outside `cli`; return data, and let `cli` print it"),
                );
            }
        }
    }
    if name != MAPS_FILES {
        for line in uses(text, "unsafe") {
            report(
                line,
                format!("`unsafe` outside {MAPS_FILES}; do it with safe code or a crate"),
            );
        }
    }
}

/// The layer that a file belongs to: its folder, or its own name at the top.
fn layer_of(name: &str) -> &str {
    name.split('/').next().unwrap().trim_end_matches(".rs")
}

/// How many `super::` lead from the file's module to the root of the crate.
fn depth_of(name: &str) -> usize {
    let parts = name.split('/').count();
    if name.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    }
}

/// Rust files in a folder and below, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    found.sort();
    found
}

/// Files and folders that a file declares as test modules: `#[cfg(test)] mod tests;`.
fn test_files(name: &str, text: &str) -> Vec<String> {
    let folder = match name.strip_suffix("/mod.rs") {
        Some(folder) => format!("{folder}/"),
        None if matches!(name, "lib.rs" | "main.rs") => String::new(),
        None => format!("{}/", name.trim_end_matches(".rs")),
    };
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]"
            && let Some(rest) = lines.by_ref().find(|line| !line.starts_with("#["))
            && let Some(module) = rest
                .rsplit("mod ")
                .next()
                .and_then(|rest| rest.strip_suffix(';'))
            && rest.contains("mod ")
        {
            found.push(format!("{folder}{module}.rs"));
            found.push(format!("{folder}{module}/"));
        }
    }
    found
}

fn in_folder(name: &str, folder: &str) -> bool {
    folder.ends_with('/') && name.starts_with(folder)
}

/// The text with comments, strings and `#[cfg(test)]` items blanked; line numbers stay.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if line.trim() == "#[cfg(test)]" {
            code.push('\n');
            // rustfmt puts the end of an item at its beginning's indentation, or ends its only line by a semicolon.
            for line in lines.by_ref() {
                code.push('\n');
                let same = line.len() - line.trim_start().len() == indent;
                let attribute = line.trim_start().starts_with("#[");
                if same && !attribute && (line.ends_with(';') || line.ends_with('}')) {
                    break;
                }
            }
        } else {
            code.push_str(&without_words(line));
            code.push('\n');
        }
    }
    code
}

/// A line without its comment and without what stands in its strings.
fn without_words(line: &str) -> String {
    let mut code = String::new();
    let (mut quoted, mut escaped) = (false, false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if !quoted && chars.peek() == Some(&'/') => break,
            '\'' if !quoted && chars.peek() == Some(&'"') => {
                chars.next();
                chars.next();
            }
            '"' if !escaped => quoted = !quoted,
            _ if !quoted => code.push(c),
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    code
}

/// What follows `root::` in paths and use groups: line and first name, `crate::{a::b, c}` gives `a` and `c`.
fn heads(text: &str, root: &str) -> Vec<(usize, String)> {
    let start = format!("{root}::");
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&start) {
        if text[..at].ends_with(is_word) || text[..at].ends_with('$') {
            continue;
        }
        let mut at = at + start.len();
        if text[at..].starts_with('{') {
            let (mut depth, mut fresh) = (0, true);
            for (place, c) in text[at..].char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => fresh = true,
                    _ if depth == 1 && fresh && is_word(c) => {
                        found.push(head(text, at + place));
                        fresh = false;
                    }
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            at += text[at..].len() - text[at..].trim_start().len();
            found.push(head(text, at));
        }
    }
    found
}

fn head(text: &str, at: usize) -> (usize, String) {
    let line = 1 + text[..at].matches('\n').count();
    let word = text[at..].chars().take_while(|c| is_word(*c)).collect();
    (line, word)
}

/// Lines that use a path or a word, each once. Groups of `std` are opened.
fn uses(text: &str, path: &str) -> BTreeSet<usize> {
    if let Some(name) = path.strip_prefix("std::") {
        let heads = heads(text, "std").into_iter();
        return heads
            .filter(|head| head.1 == name)
            .map(|head| head.0)
            .collect();
    }
    let found = text.match_indices(path).filter(|(at, _)| {
        let before = text[..*at].ends_with(is_word);
        let after = text[at + path.len()..].starts_with(is_word) && !path.ends_with('!');
        !before && !after
    });
    found
        .map(|(at, _)| 1 + text[..at].matches('\n').count())
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Writes a small tree and reads it as the house is read.
fn violations_of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    violations(folder.path())
}

#[test]
fn a_good_tree_has_no_violations() {
    let files = [
        ("lib.rs", "//! A library.\npub mod base;\npub mod plan;\n"),
        (
            "main.rs",
            "//! A program.\nfn main() {\n    eprintln!(\"{}\", 1);\n}\n",
        ),
        ("base/mod.rs", "//! What all share.\nuse std::io;\n"),
        (
            "plan/mod.rs",
            "//! Decides. Not by std::fs, nor by [`crate::store`].\nuse crate::{base::digest, model};\n\
             // crate::store would be wrong\nconst HINT: &str = \"std::fs and println! and unsafe\";\n\
             #[cfg(test)]\n#[path = \"tests.rs\"]\nmod tests;\n#[cfg(test)]\nmod more {\n    use crate::store;\n    use std::fs;\n}\n",
        ),
        (
            "plan/tests.rs",
            "//! Tests of the plan.\nuse crate::store;\nuse std::fs;\n",
        ),
        (
            "cli/mod.rs",
            "//! Prints.\nfn say() {\n    println!(\"done\");\n}\n",
        ),
        (
            "steps/ifc/map.rs",
            "//! Maps a file.\n#[allow(unsafe_code)]\nfn map() {\n    unsafe { core() }\n}\n",
        ),
        (
            "store/disk.rs",
            "//! Writes.\nuse std::fs;\nuse super::layout;\n",
        ),
    ];
    assert_eq!(violations_of(&files), Vec::<String>::new());
}

#[test]
fn a_wrong_tree_is_found_out() {
    let long = "//! Long.\n".to_owned() + &"\n".repeat(LINES);
    let files = [
        ("base/mod.rs", "use crate::model;\n"),
        ("extra.rs", "//! Belongs nowhere.\n"),
        (
            "plan/decide.rs",
            "//! Decides.\nuse crate::{\n    base::digest,\n    store::{Disk, lock},\n};\n\nfn f() -> crate::run::Run {}\n",
        ),
        (
            "plan/mod.rs",
            "//! Plans.\n#[cfg(test)]\nmod tests {\n    use crate::store;\n}\nuse super::store;\n",
        ),
        (
            "plan/way.rs",
            "//! A way out.\nuse super::super::store;\nuse super::decide;\n",
        ),
        (
            "run/utils.rs",
            "//! All sorts.\nfn f() {\n    println!(\"x\"); // said\n}\n",
        ),
        (
            "steps/fast.rs",
            "//! Fast.\nfn f() {\n    unsafe { g() }\n}\n",
        ),
        ("store/long.rs", long.as_str()),
        (
            "view/mod.rs",
            "//! Shows.\nuse std::{fs::File, io};\nfn f() {\n    let now = std::time::SystemTime::now();\n    std::env::var(\"HOME\");\n}\n",
        ),
    ];
    let shared = "move what is shared up the table, or hand it in as a value or trait";
    let expected = [
        "src/base/mod.rs:1: the first line says nothing; begin with `//! ` and what the file holds".to_owned(),
        format!("src/base/mod.rs:1: `base` imports `model`, but imports nothing; {shared}"),
        "src/extra.rs:1: `extra` is no layer; put the file into one of those in tests/architecture.rs".to_owned(),
        format!("src/plan/decide.rs:4: `plan` imports `store`, but may import only `base`, `expr`, `model`; {shared}"),
        format!("src/plan/decide.rs:7: `plan` imports `run`, but may import only `base`, `expr`, `model`; {shared}"),
        "src/plan/mod.rs:6: `super` leaves the layer; write `crate::`, so that the import can be seen".to_owned(),
        "src/plan/way.rs:2: `super` leaves the layer; write `crate::`, so that the import can be seen".to_owned(),
        "src/run/utils.rs:1: `utils` names no idea; name what the file holds, and keep errors beside their code".to_owned(),
        "src/run/utils.rs:3: `println!` outside `cli`; return data, and let `cli` print it".to_owned(),
        "src/steps/fast.rs:3: `unsafe` outside steps/ifc/map.rs; do it with safe code or a crate".to_owned(),
        "src/store/long.rs:601: 601 lines, at most 600; split the file by its ideas".to_owned(),
        "src/view/mod.rs:2: `view` is pure, but uses `std::fs`; take a `base::source` trait, or do it in `store`".to_owned(),
        "src/view/mod.rs:5: `view` is pure, but uses `std::env`; read settings in `cli` and hand them on as values".to_owned(),
        "src/view/mod.rs:4: `view` is pure, but uses `SystemTime`; take the time as a value or by the trait `Clock`".to_owned(),
    ];
    assert_eq!(violations_of(&files), expected);
}
