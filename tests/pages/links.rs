//! Every link between the pages leads to a file that exists, and to a heading on it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// Returns the anchors of a page, as GitHub makes them from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_block = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if line.starts_with('#') && !is_block {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    pages(&root.join("docs"), &mut all);
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        all.push(entry.unwrap().path().join("README.md"));
    }
    let mut wrong = Vec::new();
    for page in all {
        let Ok(text) = std::fs::read_to_string(&page) else {
            continue;
        };
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.starts_with("http") || link.contains(char::is_whitespace) {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(file)
            };
            let is_there = if anchor.is_empty() {
                target.exists()
            } else {
                std::fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor))
            };
            if !is_there {
                let page = page.strip_prefix(root).unwrap();
                wrong.push(format!("{}: no `{link}`", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_that_the_code_names_is_there() {
    fn check(root: &Path, folder: &Path, wrong: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(root, &path, wrong);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for rest in text.split("docs/").skip(1) {
                    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
                    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                    let name = rest[..end].trim_end_matches('.');
                    if Path::new(name).extension().is_some_and(|it| it == "md")
                        && !root.join("docs").join(name).exists()
                    {
                        wrong.push(format!("{}: no docs/{name}", path.display()));
                    }
                }
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    check(root, &root.join("src"), &mut wrong);
    check(root, &root.join("crates"), &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
