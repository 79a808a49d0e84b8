//! Values in shell scripts: each becomes a quoted word, and other places are refused.
//!
//! A value never becomes part of the script's own text. The script first assigns it to a variable, in single quotes, and uses
//! `"$variable"`. So even if this reader misjudges a place, no part of a value runs.

mod commands;
mod pieces;
mod reader;

use serde_json::Value;

use super::template::{RenderedPart, text};
pub(crate) use commands::{commands, run_by};
use pieces::{Piece, pieces};
pub use reader::Misplaced;
use reader::{ScriptReader, ValuePlace};

/// The programs that take a script after `-c`.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// The prefix of the variables that hold values.
const VARIABLE: &str = "__milepost";

/// The help for a misplaced value.
pub const HELP: &str = "write `{{ }}` outside of quotes: Milepost quotes the value; for a longer text assign it first: \
                        `name={{ … }}; … \"$name\"`";

/// Runs the script `$1` with `pipefail`: by `sh` if it knows the option (POSIX.1-2024), otherwise by `bash`.
const WITH_PIPEFAIL: &str = "if (set -o pipefail) 2>/dev/null; then exec sh -e -o pipefail -c \"$1\"; \
                             else exec bash --posix -e -o pipefail -c \"$1\"; fi";

/// Returns the program and arguments that run a script up to the first command that fails, also inside a pipe. `source` is the script
/// as declared: values must not decide which shell reads it.
pub fn invocation(source: &str, script: String) -> Vec<String> {
    let has_pipe = source.replace("||", "").contains('|');
    let words: &[&str] = if has_pipe {
        &["sh", "-c", WITH_PIPEFAIL, "sh"]
    } else {
        &["sh", "-e", "-c"]
    };
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain([script]).collect()
}

/// Returns the script that such a program runs.
pub fn invoked_script(program: &[String]) -> Option<&str> {
    let (script, _) = program.split_last()?;
    [
        invocation("", script.clone()),
        invocation("|", script.clone()),
    ]
    .iter()
    .any(|invocation| invocation == program)
    .then_some(script)
}

/// Returns the position of the script in the arguments of a shell: `["sh", "-c", SCRIPT]`.
pub fn script_of<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    let mut arguments = arguments.into_iter().enumerate();
    let (_, program) = arguments.next()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if !SHELLS.contains(&name) {
        return None;
    }
    let mut takes_script = false;
    for (at, argument) in arguments {
        match argument.strip_prefix('-') {
            Some(flags) if !flags.starts_with('-') => takes_script |= flags.contains('c'),
            _ if takes_script => return Some(at),
            // The value of an option such as `-o`.
            _ => {}
        }
    }
    None
}

/// Checks that every `{{ }}` of a script is in a place where its value becomes a quoted word.
///
/// # Errors
/// The first misplaced value.
pub fn check(source: &str) -> Result<(), Misplaced> {
    let pieces = pieces(source);
    let mut reader = ScriptReader::default();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => reader.text(text),
            Piece::Value(range) => {
                let next = pieces.get(at + 1).map(Piece::text);
                reader
                    .value(next.unwrap_or_default())
                    .map_err(|wrong| Misplaced {
                        range: range.clone(),
                        ..wrong
                    })?;
            }
        }
    }
    Ok(())
}

/// Returns the script of a rendered template. `file` writes a list of names and returns the path of its file.
///
/// # Errors
/// If a value is misplaced, or a list is in the place of one word.
pub fn script<E: From<Misplaced>>(
    parts: &[RenderedPart],
    file: &mut dyn FnMut(&RenderedPart) -> Result<String, E>,
) -> Result<String, E> {
    let mut reader = ScriptReader::default();
    let mut variables = String::new();
    let mut script = String::new();
    let mut count = 0;
    let mut word = |value: &str| {
        count += 1;
        variables.push_str(&format!("{VARIABLE}{count}={}; ", quoted(value)));
        format!("\"${VARIABLE}{count}\"")
    };
    for (at, part) in parts.iter().enumerate() {
        let value = match part {
            RenderedPart::Text(text) => {
                reader.text(text);
                script.push_str(text);
                continue;
            }
            RenderedPart::Value(value) => value.clone(),
            RenderedPart::File { .. } => Value::String(file(part)?),
        };
        let next = match parts.get(at + 1) {
            Some(RenderedPart::Text(text)) => text.as_str(),
            Some(_) => "{",
            None => "",
        };
        let place = reader.value(next)?;
        match value {
            Value::Array(values) if place == ValuePlace::Word => {
                let words: Vec<String> = values.iter().map(|value| word(&text(value))).collect();
                script.push_str(&words.join(" "));
            }
            Value::Array(_) => {
                let message = "`{{ }}` is a list where one word is expected: put spaces around it, and no quotes";
                let range = 0..0;
                return Err(Misplaced {
                    range,
                    message: message.to_owned(),
                }
                .into());
            }
            Value::Null if place == ValuePlace::Word => {}
            // The quotes of the declaration close before the variable, and open after it.
            value if place == ValuePlace::Quotes('\'') => {
                script.push_str(&format!("'{}'", word(&text(&value))));
            }
            value if place == ValuePlace::Quotes('"') => {
                script.push_str(&format!("\"{}\"", word(&text(&value))));
            }
            value => script.push_str(&word(&text(&value))),
        }
    }
    Ok(variables + &script)
}

/// Returns a text in single quotes, as every POSIX shell reads it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
