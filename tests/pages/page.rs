//! A page of the docs as a list of things to do: files to write and commands to run, with the output that the page shows.

use std::ops::Range;

/// One block of a page.
#[derive(Debug)]
pub enum Block {
    /// A file, shown below a line that ends in its path in backquotes and a colon.
    File {
        /// The path, relative to the folder of the last command.
        path: String,
        /// The whole text of the file.
        text: String,
        /// The language of the block, such as `toml`.
        language: String,
    },
    /// Commands of a `console` block.
    Console(Vec<Shown>),
    /// A block that is neither; `line` counts from 1.
    Unknown {
        /// The line of the fence.
        line: usize,
    },
}

/// A command with the output that the page shows below it.
#[derive(Debug)]
pub struct Shown {
    /// The text after `$ `, with all continuation lines.
    pub command: String,
    /// The lines of output on the page, counted from 0; where the output would go if there is none.
    pub lines: Range<usize>,
}

/// Returns the blocks of a page in their order.
pub fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut path: Option<String> = None;
    let mut at = 0;
    while at < lines.len() {
        let Some(language) = lines[at].strip_prefix("```") else {
            if !lines[at].is_empty() {
                path = path_before(lines[at]);
            }
            at += 1;
            continue;
        };
        let first = at + 1;
        let length = lines[first..].iter().position(|line| *line == "```");
        let end = first + length.expect("a block that never ends");
        found.push(match path.take() {
            Some(path) => Block::File {
                path,
                text: lines[first..end]
                    .iter()
                    .map(|it| format!("{it}\n"))
                    .collect(),
                language: language.to_owned(),
            },
            None if language == "console" => Block::Console(commands(&lines, first..end)),
            None => Block::Unknown { line: at + 1 },
        });
        at = end + 1;
    }
    found
}

/// Returns the path of a line such as "Create `tools/x.py`:".
fn path_before(line: &str) -> Option<String> {
    let before = line.strip_suffix("`:")?;
    before.rsplit_once('`').map(|(_, path)| path.to_owned())
}

fn commands(lines: &[&str], block: Range<usize>) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut at = block.start;
    while at < block.end {
        if let Some(command) = lines[at].strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                at += 1;
                command.push('\n');
                command.push_str(lines[at]);
            }
            let lines = at + 1..at + 1;
            found.push(Shown { command, lines });
        } else {
            let shown = found.last_mut().expect("output before the first command");
            shown.lines.end = at + 1;
        }
        at += 1;
    }
    found
}
