//! What the documents cite is there: tests by their names, files of the repository, and templates as `milepost init` writes them.

use crate::support::Project;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder whose names end so, with their paths from the root of the repository.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let path = path.strip_prefix(root()).unwrap();
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// The Rust files of all packages.
fn product_files() -> Vec<String> {
    [files("src", ".rs"), files("crates", ".rs")].concat()
}

/// The documents, each with its text.
fn documents() -> Vec<(String, String)> {
    let mut names = files("docs", ".md");
    names.extend(["README.md", "CONTRIBUTING.md"].map(str::to_owned));
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let page = entry.unwrap().path().join("README.md");
        if page.is_file() {
            let page = page.strip_prefix(root()).unwrap();
            names.push(page.to_string_lossy().into_owned());
        }
    }
    let read = |name: String| {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// All tests, each by its whole name: `cli::init::minimal_runs`.
fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files("tests", ".rs").into_iter().chain(product_files()) {
        let module = file.rsplit_once("src/").or(file.split_once('/'));
        let module = module.unwrap().1.trim_end_matches(".rs");
        let module = module.trim_end_matches("/mod").replace('/', "::");
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line == "#[test]" {
                is_test = true;
            } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = rest.split('(').next().unwrap();
                found.insert(format!("{module}::{name}"));
                is_test = false;
            }
        }
    }
    found
}

/// What stands in backquotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a text is a name of Rust, or several with `::` between them.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_lowercase())
            && part
                .chars()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_')
    };
    text.split("::").all(is_part)
}

/// Whether this is a test, by its own name or by its whole one, or a module of tests.
fn is_test(tests: &BTreeSet<String>, name: &str) -> bool {
    let own = format!("::{name}");
    let module = format!("{name}::");
    let is = |test: &String| test == name || test.ends_with(&own) || test.starts_with(&module);
    tests.iter().any(is)
}

#[test]
fn every_cited_test_is_there() {
    let tests = tests();
    let mut code = String::new();
    for file in product_files().into_iter().chain(files("tests", "")) {
        if let Ok(text) = fs::read_to_string(root().join(&file))
            && file != "tests/documents.rs"
        {
            code.push_str(&text);
        }
    }
    let mut wrong = Vec::new();
    for (page, text) in documents() {
        let mut cites = false;
        for (line, number) in text.lines().zip(1..) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if !line.starts_with('|') {
                cites = false;
            } else if cells.last().is_some_and(|last| *last == "test") {
                cites = true;
            }
            let says = ["the same", "no test: ", "by hand: `"];
            let is_said = |last: &&&str| says.iter().any(|said| last.starts_with(said));
            let last = cells.last().filter(|_| cites);
            for name in quoted(line).filter(|name| is_name(name)) {
                let is_cited = last.filter(|last| !is_said(last));
                let is_cited = is_cited.is_some_and(|last| last.contains(&format!("`{name}`")));
                let is_module = name.contains("::");
                // The name of a test is a sentence; other names of that form occur in the code.
                let is_sentence = name.matches('_').count() > 2 && !code.contains(name);
                if (is_cited || is_module || is_sentence) && !is_test(&tests, name) {
                    wrong.push(format!("{page}:{number}: no test is `{name}`"));
                }
            }
            let is_bare = |last: &&&str| {
                let is_row = !last.starts_with("---") && **last != "test";
                is_row && !quoted(last).any(is_name) && !is_said(last)
            };
            if last.as_ref().is_some_and(is_bare) {
                wrong.push(format!("{page}:{number}: the row cites no test"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_cited_file_is_there() {
    const ENDINGS: [&str; 7] = [".rs", ".toml", ".jq", ".md", ".schema.json", ".js", ".py"];
    let mut wrong = Vec::new();
    for (page, text) in documents() {
        let shown = shown(&text);
        let own = match page.as_str() {
            // This page shows a project of its own.
            "docs/reference/language.md" => continue,
            "docs/systems/building-models.md" => ".".to_owned(),
            page => match page.strip_prefix("docs/systems/") {
                Some(name) => format!("examples/{}", name.trim_end_matches(".md")),
                None => page
                    .rsplit_once('/')
                    .map_or(".", |(folder, _)| folder)
                    .to_owned(),
            },
        };
        let mut places: Vec<_> = [".", "src", "tests", "tests/examples", &own]
            .map(|it| root().join(it))
            .into();
        for package in fs::read_dir(root().join("crates")).unwrap() {
            places.push(package.unwrap().path().join("src"));
        }
        for (line, number) in text.lines().zip(1..) {
            for path in quoted(line) {
                let is_file = path.contains('/')
                    && path
                        .chars()
                        .all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it))
                    && ENDINGS.iter().any(|ending| path.ends_with(ending));
                // Files of a workspace are not of the repository.
                let is_made = ["workspace/", "inputs/", "intermediate/", "outputs/", "/"];
                let is_made = is_made.iter().any(|folder| path.starts_with(folder));
                let is_shown = shown.iter().any(|(name, _)| name == path);
                let is_made =
                    is_made || is_shown || path.contains("NAME") || path.contains("N_name");
                if is_file && !is_made && !places.iter().any(|place| place.join(path).exists()) {
                    wrong.push(format!("{page}:{number}: there is no `{path}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The blocks below a line that ends in a path in backquotes and a colon.
fn shown(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    let mut name: Option<String> = None;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block = lines.by_ref().take_while(|line| *line != "```");
            let block: String = block.map(|line| format!("{line}\n")).collect();
            found.extend(name.take().map(|name| (name, block)));
        } else if !line.is_empty() {
            let before = line
                .strip_suffix("`:")
                .and_then(|line| line.rsplit_once('`'));
            name = before.map(|(_, name)| name.to_owned());
        }
    }
    found
}

#[test]
fn files_that_the_readme_shows_are_those_of_init() {
    let project = Project::new(&[]);
    let ran = project.output("init minimal my-project");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let shown = shown(&readme);
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["stages/1_upper.toml"]);
    for (name, block) in &shown {
        assert_eq!(&project.read(&format!("my-project/{name}")), block);
    }
    // No other block declares anything of a file that it does not name.
    for block in readme.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let is_shown = shown.iter().any(|(_, text)| text == block);
        assert!(is_shown || block.starts_with("[agents."), "{block}");
    }
}

#[test]
fn the_list_of_what_is_not_compared_is_that_of_the_plan() {
    let text = fs::read_to_string(root().join("docs/reference/language.md")).unwrap();
    let (_, list) = text.split_once("### What is not compared\n").unwrap();
    let (list, _) = list.split_once("\n## ").unwrap();
    let items: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .collect();
    assert_eq!(items, milepost_core::model::fingerprint::OUTSIDE);
}
