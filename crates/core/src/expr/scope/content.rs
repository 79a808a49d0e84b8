//! The content of a file as a value, by its format.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use serde_json::Value;

use super::columns::Columns;
use super::table;
use crate::base::source::Source;
use crate::expr::place::{Place, listed};
use crate::expr::select::SelectError;

/// How a file's content becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON value.
    Json,
    /// A JSON value a line: a list.
    Ndjson,
    /// A table: a list of objects, keyed by the header. Without declared columns every cell is a string, an empty one too.
    Csv,
    /// An object. Dates are strings.
    Toml,
    /// UTF-8 text: a string.
    Text,
    /// No content that an expression could use: known by its path and digest only.
    Binary,
}

/// How a file is read: its format and, if it is a table, its declared columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The format.
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

/// Why a name has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The name is not there.
    #[error("`{name}` is not a name of this stage; it has {}{}", listed(.has.iter().map(String::as_str)), did_you_mean(.near.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name that is there.
        near: Option<String>,
        /// The names that are there.
        has: Vec<String>,
    },
    /// The file has no content to show.
    #[error("`{name}` ({file}) is a binary file without a value; use `paths.{name}`")]
    Binary {
        /// The name.
        name: String,
        /// The file.
        file: String,
    },
    /// The file could not be read.
    #[error("{file}: cannot be read: {message}")]
    Read {
        /// The file.
        file: String,
        /// What the file system says.
        message: String,
    },
    /// The content is not of its format.
    #[error("{file}: {message}")]
    Parse {
        /// The file.
        file: String,
        /// What is wrong, with the line.
        message: String,
    },
    /// A plain path does not fit the content.
    #[error("{file}: {error}")]
    Unfit {
        /// The file, or the name of a value.
        file: String,
        /// Where it does not fit.
        error: Box<SelectError>,
    },
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

impl Format {
    /// The format by the ending of a file's name. IFC counts as binary: a step reads it, no expression does.
    pub fn of_path(path: &str) -> Format {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name
            .rsplit_once('.')
            .map_or("", |(_, ending)| ending)
            .to_ascii_lowercase();
        Self::named(&ending).unwrap_or(Format::Text)
    }

    /// The format by its name in a declaration, which is the usual ending of its files.
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

/// Opens a source.
pub(crate) fn open(source: &dyn Source) -> Result<Box<dyn Read + Send>, ScopeError> {
    source.open().map_err(|error| read_error(source, &error))
}

pub(super) fn read_error(source: &dyn Source, error: &std::io::Error) -> ScopeError {
    ScopeError::Read {
        file: source.name(),
        message: error.to_string(),
    }
}

pub(super) fn wrong(source: &dyn Source, message: impl Into<String>) -> ScopeError {
    ScopeError::Parse {
        file: source.name(),
        message: message.into(),
    }
}

/// Reads a file to a value.
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
        Format::Json => serde_json::from_str(&text(source)?)
            .map_err(|error| wrong(source, json_message(&error))),
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
            Ok(dates_as_strings(value))
        }
        Format::Ndjson | Format::Csv => {
            let mut list = Vec::new();
            records(source, reading, &mut |_, record| {
                list.push(record);
                Ok::<(), ScopeError>(())
            })?;
            Ok(Value::Array(list))
        }
    }
}

pub(super) fn text(source: &dyn Source) -> Result<String, ScopeError> {
    // Most files are no longer, and are read at once.
    let mut bytes = Vec::with_capacity(1 << 13);
    open(source)?
        .read_to_end(&mut bytes)
        .map_err(|error| read_error(source, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = before.matches('\n').count() + 1;
        wrong(
            source,
            format!("line {line} is not UTF-8 text; a binary file is used by `paths`"),
        )
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
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
    let reader = BufReader::with_capacity(1 << 16, open(source)?);
    if reading.format == Format::Csv {
        return table::rows(source, reader, reading.columns.as_deref(), each);
    }
    let mut number = 0;
    for (at, line) in reader.lines().enumerate() {
        let line = line.map_err(|error| read_error(source, &error))?;
        let line = line
            .strip_prefix('\u{feff}')
            .filter(|_| at == 0)
            .unwrap_or(&line);
        if line.trim().is_empty() {
            continue;
        }
        let record = serde_json::from_str(line).map_err(|error| {
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            wrong(
                source,
                format!("line {}, column {}: {said}", at + 1, error.column()),
            )
        })?;
        number += 1;
        each(number, record)?;
    }
    Ok(())
}

/// The lines, from 1, on which the records of an NDJSON or CSV file begin; none for other formats.
pub fn lines(source: &dyn Source, format: Format) -> Result<Vec<u64>, ScopeError> {
    match format {
        Format::Csv => table::lines(source),
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

/// The TOML reader gives a date as an object of one reserved key.
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
