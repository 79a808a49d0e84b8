//! A TOML file as a tree in which every key and every value has its place.

use crate::decl::problem::{Problem, Report, SourceFile};
use crate::decl::tables::syntax;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value with its bytes in the file; for a table with a header, those of the header.
#[derive(Debug, Clone)]
pub(crate) struct TomlNode {
    /// Bytes of the file.
    pub(crate) span: Range<usize>,
    pub(crate) value: Val,
}

/// A value of TOML.
#[derive(Debug, Clone)]
pub(crate) enum Val {
    Text(String),
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A date or time, as written.
    Date(String),
    /// `[…]` or the tables of `[[…]]`.
    List(Vec<TomlNode>),
    /// `[…]` or `{…}`.
    Table(TomlTable),
}

impl Val {
    /// Returns the kind of the value with its article, for messages.
    pub(crate) fn described(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl TomlNode {
    /// Returns the string, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Val::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the table, if it is one.
    pub(crate) fn table(&self) -> Option<&TomlTable> {
        match &self.value {
            Val::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the list, if it is one.
    pub(crate) fn list(&self) -> Option<&[TomlNode]> {
        match &self.value {
            Val::List(list) => Some(list),
            _ => None,
        }
    }

    /// As JSON. Dates become strings.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.value {
            Val::Text(text) | Val::Date(text) => text.as_str().into(),
            Val::Int(number) => (*number).into(),
            Val::Float(number) => (*number).into(),
            Val::Bool(value) => (*value).into(),
            Val::List(list) => Value::Array(list.iter().map(TomlNode::to_json).collect()),
            Val::Table(table) => Value::Object(
                table
                    .entries
                    .iter()
                    .map(|(key, node)| (key.name.clone(), node.to_json()))
                    .collect(),
            ),
        }
    }
}

/// A key with its place.
#[derive(Debug, Clone)]
pub(crate) struct TomlKey {
    /// Bytes of the file.
    pub(crate) span: Range<usize>,
    /// The key, unquoted.
    pub name: String,
}

/// Keys and values in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TomlTable {
    /// Key and value.
    pub(crate) entries: Vec<(TomlKey, TomlNode)>,
}

impl TomlTable {
    /// Returns the value behind a key.
    pub(crate) fn get(&self, name: &str) -> Option<&TomlNode> {
        self.entry(name).map(|(_, node)| node)
    }

    /// Returns the key and the value behind it.
    pub(crate) fn entry(&self, name: &str) -> Option<&(TomlKey, TomlNode)> {
        self.entries.iter().find(|(key, _)| key.name == name)
    }
}

/// Reads a file's text. Mistakes of syntax are reported, and there is no tree: a parser's guess at a broken file would only cause
/// false errors.
pub(crate) fn parse(file: &SourceFile, report: &mut Report) -> Option<TomlTable> {
    let (tree, errors) = DeTable::parse_recoverable(&file.text);
    if errors.is_empty() {
        return Some(table(file, tree.get_ref(), report));
    }
    // A slip is mended in a copy, so that the rest of the file is read as it is meant: its lines stay where they are.
    let mut text = file.text.to_string();
    let mut told: BTreeSet<usize> = BTreeSet::new();
    for _ in 0..MOST_SLIPS {
        let slip = syntax::slip(&text);
        let (slip_line, _) = slip
            .as_ref()
            .map_or((usize::MAX, 0), |slip| line_of(&text, slip.span.start));
        for error in DeTable::parse_recoverable(&text).1 {
            let span = error.span().unwrap_or(0..0);
            // one slip often breaks the rest of its line too
            if line_of(&text, span.start).0 < slip_line && told.insert(line_of(&text, span.start).0)
            {
                report.add(told_by_the_parser(file, &text, span, error.message()));
            }
        }
        let Some(slip) = slip else { break };
        if told.insert(slip_line) {
            let problem = file.problem(moved(&text, &file.text, slip.span), slip.message);
            report.add(problem.label(slip.label).help(slip.help));
        }
        let Some((range, new)) = slip.edit else { break };
        text.replace_range(range, &new);
    }
    None
}

/// Slips of one file that are looked for.
const MOST_SLIPS: usize = 50;

/// A mistake in the parser's words.
fn told_by_the_parser(file: &SourceFile, text: &str, span: Range<usize>, message: &str) -> Problem {
    let before = text.get(..span.start).unwrap_or_default();
    let help = if message.contains("escape") {
        Some("write jq and patterns in single quotes: 'test(\"\\\\S\")'; nothing is escaped there")
    } else if message.starts_with("unexpected key or value") && before.ends_with('"') {
        Some("a string in double quotes ends at the next one: write jq in single quotes, '…'")
    } else {
        None
    };
    file.problem(
        moved(text, &file.text, span),
        format!("this is not TOML: {message}"),
    )
    .maybe_help(help.map(str::to_owned))
}

/// Returns the line of a byte, from 0, and where it begins.
fn line_of(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    (before.split(|&byte| byte == b'\n').count() - 1, start)
}

/// Returns the bytes of the original for those of a copy in which earlier lines were mended.
fn moved(copy: &str, original: &str, span: Range<usize>) -> Range<usize> {
    let (line, start) = line_of(copy, span.start);
    let begins: usize = original
        .split_inclusive('\n')
        .take(line)
        .map(str::len)
        .sum();
    begins + (span.start - start)..begins + (span.end.max(span.start) - start)
}

fn table(file: &SourceFile, from: &DeTable<'_>, report: &mut Report) -> TomlTable {
    let mut entries: Vec<(TomlKey, TomlNode)> = from
        .iter()
        .map(|(key, value)| {
            let name = key.get_ref().to_string();
            (
                TomlKey {
                    span: key.span(),
                    name,
                },
                node(file, value.span(), value.get_ref(), report),
            )
        })
        .collect();
    entries.sort_by_key(|(key, _)| key.span.start);
    TomlTable { entries }
}

fn node(
    file: &SourceFile,
    span: Range<usize>,
    from: &DeValue<'_>,
    report: &mut Report,
) -> TomlNode {
    let value = match from {
        DeValue::String(text) => Val::Text(text.to_string()),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            Val::Int(read.unwrap_or_else(|_| {
                report.add(file.problem(span.clone(), "this number is too large"));
                0
            }))
        }
        DeValue::Float(number) => {
            let read: Option<f64> = number.as_str().parse().ok();
            Val::Float(read.filter(|number| number.is_finite()).unwrap_or_else(|| {
                report.add(file.problem(span.clone(), "this is not a finite number"));
                0.0
            }))
        }
        DeValue::Boolean(value) => Val::Bool(*value),
        DeValue::Datetime(date) => Val::Date(date.to_string()),
        DeValue::Array(list) => Val::List(
            list.iter()
                .map(|item| node(file, item.span(), item.get_ref(), report))
                .collect(),
        ),
        DeValue::Table(inner) => Val::Table(table(file, inner, report)),
    };
    TomlNode { span, value }
}

/// Returns the place in the file of byte `offset` of the string at `span`, which includes its quotes.
pub(crate) fn inside(source: &str, span: &Range<usize>, offset: usize) -> usize {
    let Some(raw) = source.get(span.clone()) else {
        return span.start;
    };
    let (quote, is_literal) = match raw.as_bytes() {
        [b'\'', b'\'', b'\'', ..] => (3, true),
        [b'"', b'"', b'"', ..] => (3, false),
        [b'\'', ..] => (1, true),
        [b'"', ..] => (1, false),
        _ => return span.start,
    };
    let mut at = quote;
    if quote == 3 {
        // a newline right behind the opening quotes does not count
        at += usize::from(raw[at..].starts_with('\r'));
        at += usize::from(raw[at..].starts_with('\n'));
    }
    let end = raw.len().saturating_sub(quote).max(at);
    if is_literal {
        return span.start + (at + offset).min(end);
    }
    let mut decoded = 0;
    while decoded < offset && at < end {
        let Some(c) = raw[at..].chars().next() else {
            break;
        };
        at += c.len_utf8();
        if c != '\\' {
            decoded += c.len_utf8();
            continue;
        }
        let Some(escape) = raw[at..].chars().next() else {
            break;
        };
        at += escape.len_utf8();
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            c if c.is_whitespace() => {
                at += raw[at..].len() - raw[at..].trim_start().len();
                continue;
            }
            _ => {
                decoded += 1;
                continue;
            }
        };
        let code = raw
            .get(at..at + digits)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        decoded += code.and_then(char::from_u32).map_or(1, char::len_utf8);
        at += digits;
    }
    span.start + at.min(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_places_inside_strings() {
        for (source, offset, found) in [
            ("'abc'", 1, "bc'"),
            (r#""a\"b""#, 2, "b\""),
            (r#""\u00e4b""#, 2, "b\""),
            ("'''\nabc'''", 1, "bc'''"),
            ("\"\"\"\r\na\\\n  b\"\"\"", 1, "\\\n  b\"\"\""),
            ("\"\"\"\r\na\\\n  bc\"\"\"", 2, "c\"\"\""),
            ("'abc'", 99, "'"),
        ] {
            assert_eq!(
                &source[inside(source, &(0..source.len()), offset)..],
                found,
                "{source}"
            );
        }
    }
}
