//! Validates files that are not JSON: tables and NDJSON row by row, others as one value.

use super::schema::{Schema, Violation, unreadable};
use milepost_core::base::path::RelPath;
use milepost_core::base::source::Source;
use milepost_core::expr::json::{Fault, Json};
use milepost_core::expr::scope::{Format, Reading, ScopeError, header, lines, misfits, parse};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use serde_json::Value;
use std::io::Read as _;

/// Violations that are kept of one file.
const KEPT: usize = 20;

/// Validates a file. The schema of a table or of NDJSON is that of one row, and violations name the line. The path is that of the
/// schema.
///
/// # Errors
/// Fails with the outcome `input` if the file cannot be read, and with `schema` if its columns or values are not valid.
pub fn validate(
    schema: Option<(&Schema, &RelPath)>,
    source: &dyn Source,
    reading: &Reading,
) -> Result<(), Outcome> {
    if let Some(columns) = &reading.columns {
        let found = misfits(source, columns, KEPT);
        refuse(found.map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?)?;
    }
    let Some((schema, path)) = schema else {
        return Ok(());
    };
    let unreadable = |error: ScopeError| Outcome::new(OutcomeKind::Input, error.to_string());
    let content = parse(&source.name(), source, reading).map_err(unreadable)?;
    let name = source.name();
    let rows = match content {
        Value::Array(rows) if matches!(reading.format, Format::Csv | Format::Ndjson) => rows,
        other => vec![other],
    };
    let mut details: Vec<String> = Vec::new();
    if reading.format == Format::Csv && rows.is_empty() {
        let header = header(source).map_err(unreadable)?;
        let row = header.iter().map(|name| (name.clone(), Value::from("")));
        let found = schema.violations(&Value::Object(row.collect()), "", KEPT);
        let found = found.iter().filter(|violation| is_of_columns(violation));
        details.extend(found.map(|violation| of_header(&name, violation, &header)));
    }
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let left = KEPT - found.len();
        let violations = schema.violations(row, "", left).into_iter();
        found.extend(violations.map(|violation| (number, violation)));
        if found.len() >= KEPT {
            break;
        }
    }
    let lines = if found.is_empty() {
        Vec::new()
    } else {
        lines(source, reading).unwrap_or_default()
    };
    for (number, violation) in found {
        let field = violation.pointer.trim_start_matches('/');
        let is_column =
            reading.format == Format::Csv && field.is_empty() && violation.keyword == "required";
        let detail = if is_column {
            // A column that one row lacks is missing from the header.
            let columns = rows.first().and_then(Value::as_object);
            let columns = columns.map(|row| row.keys().cloned().collect::<Vec<_>>());
            of_header(&name, &violation, &columns.unwrap_or_default())
        } else {
            let at = match lines.get(number) {
                Some(line) => format!("{name}:{line}"),
                None => format!("{name}, row {}", number + 1),
            };
            let field = if field.is_empty() {
                String::new()
            } else {
                format!("{field}: ")
            };
            let is_empty = reading.columns.is_some()
                && violation.keyword == "type"
                && rows[number].pointer(&violation.pointer) == Some(&Value::Null);
            let message = if is_empty {
                "the cell is empty"
            } else {
                violation.message.as_str()
            };
            format!("{at}: {field}{message}")
        };
        if !details.contains(&detail) {
            details.push(detail);
        }
    }
    if let Some(first) = details.first_mut() {
        first.push_str(&format!(" (by {path})"));
    }
    refuse(details)
}

/// Checks that a file without a schema is of its format. Of a table only the header is read.
///
/// # Errors
/// Fails with the outcome `schema` if it is not.
pub fn check_format(source: &dyn Source, format: Format) -> Result<(), Outcome> {
    let name = source.name();
    let checked = match format {
        Format::Json => check_json(source, false),
        Format::Ndjson => check_json(source, true),
        Format::Toml => parse(&name, source, &format.into())
            .map(|_| ())
            .map_err(|error| error.to_string()),
        Format::Csv => match header(source) {
            Ok(header) if header.is_empty() => Err(format!("`{name}` is empty, expected a header")),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        },
        Format::Text | Format::Binary => Ok(()),
    };
    checked.map_err(|why| {
        let message = format!(
            "{why}; if the file has another format, declare it, such as `format = \"text\"`"
        );
        Outcome::new(OutcomeKind::Schema, message)
    })
}

/// Reads one JSON value, or as many as there are.
fn check_json(source: &dyn Source, is_many: bool) -> Result<(), String> {
    let read = || -> Result<(), Fault> {
        let mut reader = source.open().map_err(Fault::Io)?;
        let mut begin = Vec::new();
        let read = reader.by_ref().take(3).read_to_end(&mut begin);
        read.map_err(Fault::Io)?;
        if begin == "\u{feff}".as_bytes() {
            begin.clear();
        }
        let mut json = Json::new(begin.as_slice().chain(reader));
        if is_many {
            while json.peek()?.is_some() {
                json.skip()?;
            }
            return Ok(());
        }
        json.skip()?;
        json.end()
    };
    read().map_err(|fault| format!("`{}`: {}", source.name(), unreadable(fault).message))
}

/// Returns true if a violation concerns the columns of a table, not its rows.
fn is_of_columns(violation: &Violation) -> bool {
    match violation.keyword.as_str() {
        "required" | "additionalProperties" | "unevaluatedProperties" => {
            violation.pointer.is_empty()
        }
        "falseSchema" => true,
        _ => false,
    }
}

fn of_header(name: &str, violation: &Violation, header: &[String]) -> String {
    let what = violation.message.replace(" in object", " in the header");
    let has = match header {
        [] => "is empty".to_owned(),
        header => format!("has {}", header.join(", ")),
    };
    format!("{name}:1: {what}, which {has}")
}

/// Refuses a file for these violations, if there are any.
fn refuse(mut found: Vec<String>) -> Result<(), Outcome> {
    if found.is_empty() {
        return Ok(());
    }
    let first = found.remove(0);
    Err(Outcome::new(OutcomeKind::Schema, first).with_details(found))
}
