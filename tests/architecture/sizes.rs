//! Sizes: lines of a file, files of a folder, the first line of a file, names that say nothing.

use super::source::Source;
use std::collections::BTreeMap;

/// The longest that a file may be, its tests included.
const LINES: usize = 600;

/// The most Rust files that a folder may hold side by side.
const FILES: usize = 15;

const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "manager", "errors", "misc"];

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
