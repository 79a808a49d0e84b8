//! Reads the content of a file as a value, by its format.

use crate::expr::json;
use std::io::BufReader;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::columns::Columns;
use super::source::{Lines, ScopeError, open, text, wrong};
use super::table;
use crate::base::foreign_text::without_mark;
use crate::base::source::Source;
use crate::expr::place::Place;

/// How a file's content becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON value.
    Json,
    /// One JSON value a line, as a list.
    Ndjson,
    /// A table: a list of objects, keyed by the header. Without declared columns every cell is a string, an empty one too.
    Csv,
    /// An object. Dates are strings.
    Toml,
    /// UTF-8 text: a string.
    Text,
    /// Expressions see only path and digest.
    Binary,
}

/// How a file is read: its format and, if it is a table, its declared columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub format: Format,
    /// The columns that the table must have.
    pub columns: Option<Arc<Columns>>,
}

impl From<Format> for Reading {
    fn from(format: Format) -> Self {
        Self {
            format,
            columns: None,
        }
    }
}

impl Format {
    /// Returns the format for the ending of a file's name. IFC is binary: steps read it, expressions do not.
    pub fn of_path(path: &str) -> Format {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name
            .rsplit_once('.')
            .map_or("", |(_, ending)| ending)
            .to_ascii_lowercase();
        Self::named(&ending).unwrap_or(Format::Text)
    }

    /// Returns the format by its name in a declaration, which is the usual ending of its files.
    pub(crate) fn named(name: &str) -> Option<Format> {
        Some(match name {
            "json" | "geojson" => Format::Json,
            "ndjson" | "jsonl" => Format::Ndjson,
            "csv" => Format::Csv,
            "toml" => Format::Toml,
            "text" | "txt" | "md" | "tap" | "yaml" | "yml" | "html" | "xml" | "svg" | "tex"
            | "log" | "tsv" => Format::Text,
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "tif" | "tiff" | "pdf" | "xlsx"
            | "xls" | "docx" | "pptx" | "zip" | "gz" | "zst" | "xz" | "tar" | "7z" | "bin"
            | "ifc" | "ifczip" | "parquet" | "sqlite" | "mp3" | "mp4" | "wav" | "ttf" | "otf"
            | "woff2" => Format::Binary,
            _ => return None,
        })
    }
}

/// Reads a file as a value.
pub fn parse(name: &str, source: &dyn Source, reading: &Reading) -> Result<Value, ScopeError> {
    match reading.format {
        Format::Binary => Err(ScopeError::Binary {
            name: name.to_owned(),
            file: source.name(),
        }),
        Format::Text => text(source).map(|mut text| {
            text.shrink_to_fit();
            Value::String(text)
        }),
        // From memory: serde_json reads bytes several times faster than a reader.
        Format::Json => {
            json::parse(&text(source)?).map_err(|error| wrong(source, json_message(&error)))
        }
        Format::Toml => {
            let text = text(source)?;
            let value = toml::from_str::<Value>(&text).map_err(|error| {
                let place = error
                    .span()
                    .map(|range| format!("{}: ", Place::of(&text, range)));
                wrong(
                    source,
                    format!("{}{}", place.unwrap_or_default(), error.message()),
                )
            })?;
            let value = dates_as_strings(value);
            // TOML has no null: it is a number that JSON does not have.
            if has_null(&value)
                && let Some(range) = not_finite(&text)
            {
                let (place, number) = (Place::of(&text, range.clone()), &text[range]);
                let message = format!("{place}: `{number}` is not a finite number");
                return Err(wrong(source, message));
            }
            Ok(value)
        }
        Format::Ndjson | Format::Csv => {
            let (mut list, mut left) = (Vec::new(), json::LARGEST);
            records(source, reading, &mut |_, record| {
                let rest = left.checked_sub(json::memory_of(&record));
                left = rest.ok_or_else(|| wrong(source, json::too_large()))?;
                list.push(record);
                Ok::<(), ScopeError>(())
            })?;
            Ok(Value::Array(list))
        }
    }
}

fn json_message(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let early = if error.is_eof() {
        "the file ends too early: "
    } else {
        ""
    };
    format!(
        "line {}, column {}: {early}{said}",
        error.line(),
        error.column()
    )
}

/// Reads the records of an NDJSON or CSV file one by one, numbered from 1.
pub(crate) fn records<E: From<ScopeError>>(
    source: &dyn Source,
    reading: &Reading,
    each: &mut dyn FnMut(u64, Value) -> Result<(), E>,
) -> Result<(), E> {
    if reading.format == Format::Csv {
        let reader = BufReader::with_capacity(1 << 16, open(source)?);
        return table::rows(source, reader, reading.columns.as_deref(), each);
    }
    let mut lines = Lines::of(source)?;
    let (mut at, mut number) = (0, 0);
    while let Some(line) = lines.next()? {
        at += 1;
        let line = if at == 1 { without_mark(line) } else { line };
        if line.trim().is_empty() {
            continue;
        }
        let record = json::parse(line).map_err(|error| {
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            wrong(
                source,
                format!("line {at}, column {}: {said}", error.column()),
            )
        })?;
        number += 1;
        each(number, record)?;
    }
    Ok(())
}

/// Returns the lines, from 1, on which the records of an NDJSON or CSV file begin; empty for other formats.
pub fn lines(source: &dyn Source, reading: &Reading) -> Result<Vec<u64>, ScopeError> {
    match reading.format {
        Format::Csv => table::lines(source, reading.columns.as_deref()),
        Format::Ndjson => {
            let text = text(source)?;
            let filled = text
                .lines()
                .zip(1..)
                .filter(|(line, _)| !line.trim().is_empty());
            Ok(filled.map(|(_, number)| number).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

/// Returns the range of the first number of a TOML file that is infinite, not a number, or too large for a double.
fn not_finite(text: &str) -> Option<Range<usize>> {
    fn of(value: &Spanned<DeValue<'_>>) -> Option<Range<usize>> {
        match value.get_ref() {
            DeValue::Float(number) => {
                let is_finite = number.as_str().parse().is_ok_and(f64::is_finite);
                (!is_finite).then(|| value.span())
            }
            DeValue::Array(items) => items.iter().find_map(of),
            DeValue::Table(table) => table.iter().find_map(|(_, value)| of(value)),
            _ => None,
        }
    }
    let table = DeTable::parse(text).ok()?;
    table.get_ref().iter().find_map(|(_, value)| of(value))
}

/// Replaces dates, which the TOML reader returns as an object with one reserved key, by strings.
fn dates_as_strings(value: Value) -> Value {
    match value {
        Value::Object(mut map) => match map.remove("$__toml_private_datetime") {
            Some(date) => date,
            None => Value::Object(
                map.into_iter()
                    .map(|(key, value)| (key, dates_as_strings(value)))
                    .collect(),
            ),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(dates_as_strings).collect()),
        other => other,
    }
}
