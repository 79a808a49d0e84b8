//! Reads the TAP YAML block in an answer's text: keys and values between `---` lines (<https://testanything.org/>, version 13).
//!
//! Models often write text that is almost YAML (`actual: The answer: 5`). So each line has one key, and its value is a scalar,
//! a quoted text, a block (`|`, `>`), indented lines that continue it, or a list of scalars.

use milepost_core::expr::json;
use serde_json::{Map, Value};

/// The content of a TAP YAML block.
#[derive(Debug, Clone, PartialEq)]
pub struct TapYamlBlock {
    /// The keys and values in the order of the block, followed by the defaults.
    pub values: Map<String, Value>,
    /// The keys that were missing or empty and have their default.
    pub defaulted: Vec<String>,
}

/// An answer without a readable TAP YAML block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TapYamlError {
    /// No line is `---`.
    #[error("there is no block between `---` lines")]
    Nothing,
    /// The block has no last `---` line, because the answer is truncated.
    #[error("the block does not end with a `---` line")]
    Cut,
    /// Another `---` line follows the block.
    #[error("a second block follows: one was expected, and no other `---` line")]
    Several,
    /// A line is not `key: value`, or its key is a duplicate.
    #[error("line {line} of the block: {what}")]
    Line {
        /// The line of the block, counted from 1.
        line: usize,
        what: String,
    },
}

/// Reads the TAP YAML block of a text. A missing or empty key gets its default. If the default is a string, a value that
/// looks like a number or `true` is read as a string too.
///
/// # Errors
/// Fails if there is no block, it is truncated or malformed, or another one follows.
pub fn tap_yaml(text: &str, defaults: &Map<String, Value>) -> Result<TapYamlBlock, TapYamlError> {
    let mut lines = text
        .lines()
        .map(str::trim_end)
        .skip_while(|line| line.trim() != "---");
    let opening = lines.next().ok_or(TapYamlError::Nothing)?;
    // A block of TAP is indented as a whole.
    let margin = opening.len() - opening.trim_start().len();
    let mut block: Vec<&str> = Vec::new();
    let ended = lines.any(|line| {
        let end = matches!(line.trim(), "---" | "...") && indent(line) <= margin;
        if !end {
            block.push(line.get(margin.min(indent(line))..).unwrap_or_default());
        }
        end
    });
    if !ended {
        return Err(TapYamlError::Cut);
    }
    if lines.any(|line| line.trim() == "---") {
        return Err(TapYamlError::Several);
    }
    let mut values = read(&block, defaults)?;
    let mut defaulted = Vec::new();
    for (key, default) in defaults {
        if values.get(key).is_none_or(Value::is_null) {
            values.insert(key.clone(), default.clone());
            defaulted.push(key.clone());
        }
    }
    Ok(TapYamlBlock { values, defaulted })
}

fn read(block: &[&str], defaults: &Map<String, Value>) -> Result<Map<String, Value>, TapYamlError> {
    let mut values = Map::new();
    let mut at = 0;
    while let Some(line) = block.get(at) {
        let first = at;
        at += 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, rest)) = line.split_once(':').filter(|(key, _)| is_key(key)) else {
            let what = format!("expected `key: value`, found `{line}`");
            return Err(TapYamlError::Line { line: at, what });
        };
        // Indented and empty lines continue the value; so do items of a list, indented or not.
        let rest = without_comment(rest.trim());
        let continues = |line: &str| {
            indent(line) > 0
                || line.is_empty()
                || (rest.is_empty() && (line.starts_with("- ") || line.starts_with('#')))
        };
        let more = block[at..]
            .iter()
            .take_while(|line| continues(line))
            .count();
        at += more;
        let key = key.trim().trim_matches(['"', '\'']);
        let as_text = defaults.get(key).is_some_and(Value::is_string);
        let value = value(rest, &block[first + 1..first + 1 + more], as_text);
        if values.insert(key.to_owned(), value).is_some() {
            return Err(TapYamlError::Line {
                line: first + 1,
                what: format!("`{key}` is a duplicate key"),
            });
        }
    }
    Ok(values)
}

fn is_key(key: &str) -> bool {
    let key = key.trim_end().trim_matches(['"', '\'']);
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || "_- ".contains(c))
        && !key.starts_with([' ', '-'])
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Parses a value from the text after its key and from the lines that continue it.
fn value(rest: &str, more: &[&str], as_text: bool) -> Value {
    if rest.starts_with(['|', '>']) && rest.len() <= 3 {
        return Value::String(blocked(rest, more));
    }
    let items: Vec<&str> = more
        .iter()
        .map(|line| line.trim())
        // A quoted text may continue with a `#`.
        .map(|line| {
            if rest.starts_with(['"', '\'']) {
                line
            } else {
                without_comment(line)
            }
        })
        .filter(|line| !line.is_empty())
        .collect();
    if rest.is_empty() && !items.is_empty() && items.iter().all(|item| item.starts_with("- ")) {
        return items
            .iter()
            .map(|item| scalar(without_comment(item[2..].trim()), false))
            .collect();
    }
    let folded: Vec<&str> = std::iter::once(rest)
        .chain(items)
        .filter(|part| !part.is_empty())
        .collect();
    scalar(without_comment(&folded.join(" ")), as_text)
}

/// Returns a value without a comment at its end: a `#` behind a blank, outside of quotes (YAML 1.2.2, 6.6).
fn without_comment(text: &str) -> &str {
    let is_flow = text.starts_with(['[', '{']);
    let (mut quote, mut closed) = (None, None);
    let mut is_escaped = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match quote {
            Some('"') if is_escaped => is_escaped = false,
            Some('"') if c == '\\' => is_escaped = true,
            Some(open) if c == open => (quote, closed) = (None, Some(at + 1)),
            None if c == '#' && before.is_whitespace() => return text[..at].trim_end(),
            // In a plain value, a quote is a letter like any other. `''` inside of single quotes closes and opens them again.
            None if matches!(c, '"' | '\'') && (is_flow || at == 0 || closed == Some(at)) => {
                quote = Some(c);
            }
            _ => {}
        }
        before = c;
    }
    text
}

/// A block scalar: `|` keeps line ends, `>` folds them; `-` takes the last one off, and so does what reads answers.
fn blocked(header: &str, more: &[&str]) -> String {
    let margin = more
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| indent(line))
        .min();
    let lines = more
        .iter()
        .map(|line| line.get(margin.unwrap_or(0)..).unwrap_or_default());
    let folds = header.starts_with('>');
    let mut text = String::new();
    for line in lines {
        if folds && !text.is_empty() && !text.ends_with('\n') && !line.is_empty() {
            text.push(' ');
        } else if !text.is_empty() && (!folds || line.is_empty()) {
            text.push('\n');
        }
        text.push_str(line);
    }
    text.trim_end().to_owned()
}

/// Parses a scalar: quoted, a number, `true`, `false`, `null`, JSON in brackets, else the text unchanged.
fn scalar(text: &str, as_text: bool) -> Value {
    if text.starts_with('"')
        && let Ok(value @ Value::String(_)) = serde_json::from_str(text)
    {
        return value;
    }
    let quoted = |quote: char| text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote);
    if quoted('\'') {
        return Value::String(text[1..text.len() - 1].replace("''", "'"));
    }
    // A quote within, unescaped, as models forget.
    if quoted('"') {
        return Value::String(text[1..text.len() - 1].replace("\\\"", "\""));
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        _ if as_text => {}
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {
            if let Ok(value) = json::parse(text) {
                return value;
            }
        }
    }
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn defaults() -> Map<String, Value> {
        let defaults = json!({"passed": false, "actual": "", "expected": "", "score": 0});
        defaults.as_object().cloned().unwrap()
    }

    fn read(text: &str) -> (Value, Vec<String>) {
        let block = tap_yaml(text, &defaults()).unwrap();
        (Value::Object(block.values), block.defaulted)
    }

    #[test]
    fn what_models_write_is_read() {
        let answer = "Here is my judgment:\n---\npassed: true\nactual: \"He said \\\"5\\\"\"\nexpected: The answer: 5 # or so\nscore: 85\n---\nDone.";
        let expected = json!({"passed": true, "actual": "He said \"5\"", "expected": "The answer: 5", "score": 85});
        assert_eq!(read(answer), (expected, Vec::new()));
        let answer = "```yaml\n---\npassed: False\nactual: |\n  line 1\n    line 2\n\n  line 3\nexpected: >-\n  one\n  two\n\n  three\nscore: 0.5\n...\n```";
        let expected = json!({"passed": false, "actual": "line 1\n  line 2\n\nline 3", "expected": "one two\nthree", "score": 0.5});
        assert_eq!(read(answer), (expected, Vec::new()));
        // An indented TAP diagnostic, with text that looks like a number where a string is expected, and with extra keys.
        let answer = "not ok 1\n  ---\n  passed: false\n  actual: 42\n  expected: 'it''s\n    more'\n  notes:\n  - one\n  - 2\n  range: [1, 2]\n  score: 10\n  ---\n";
        let expected = json!({"passed": false, "actual": "42", "expected": "it's more", "notes": ["one", 2], "range": [1, 2], "score": 10});
        assert_eq!(read(answer), (expected, Vec::new()));
    }

    #[test]
    fn a_comment_is_no_part_of_a_value() {
        let answer = "---\nscore: 85 # out of 100\npassed: TRUE # yes\nactual: \"a # b\" # said\nexpected: 'it''s #1' # too\nissue: C# and #5\n\
                      list: # three\n- 1 # one\n# none\n- \"#\"\nflow: [\"a # b\", 2] # both\nblock: | # kept\n  a # b\nnothing: NULL\nopen: \"a\n  # b\"\n\
                      quote: it\"s # odd\n---";
        let expected = json!({
            "score": 85, "passed": true, "actual": "a # b", "expected": "it's #1", "issue": "C# and", "list": [1, "#"],
            "flow": ["a # b", 2], "block": "a # b", "nothing": null, "open": "a # b", "quote": "it\"s",
        });
        assert_eq!(read(answer), (expected, Vec::new()));
    }

    #[test]
    fn defaults_are_told() {
        let (value, defaulted) = read("---\npassed: true\nactual:\n---\nDone.");
        assert_eq!(
            value,
            json!({"passed": true, "actual": "", "expected": "", "score": 0})
        );
        assert_eq!(defaulted, ["actual", "expected", "score"]);
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        let wrong = |text: &str| tap_yaml(text, &Map::new()).unwrap_err();
        assert_eq!(wrong("passed: true"), TapYamlError::Nothing);
        assert_eq!(
            wrong("---\npassed: true\nactual: cut he"),
            TapYamlError::Cut
        );
        for second in [
            "passed: false\n---",
            "or\n---\npassed: false\n---",
            "```\n```yaml\n---\npassed: false",
            "not ok 2\n  ---\n  passed: false\n  ...",
        ] {
            let text = format!("---\npassed: true\n---\n{second}");
            assert_eq!(wrong(&text), TapYamlError::Several, "{text}");
        }
        let line = |line, what: &str| TapYamlError::Line {
            line,
            what: what.to_owned(),
        };
        assert_eq!(
            wrong("---\na: 1\nno key\n---"),
            line(2, "expected `key: value`, found `no key`")
        );
        assert_eq!(
            wrong("---\na: 1\na: 2\n---"),
            line(2, "`a` is a duplicate key")
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_written_breaks_it(lines in proptest::collection::vec("[ -]{0,3}[-a:|>\"'\\[ \\\\{ß1.]{0,8}", 0..12)) {
            let _ = tap_yaml(&format!("---\n{}\n---", lines.join("\n")), &defaults());
        }
    }
}
