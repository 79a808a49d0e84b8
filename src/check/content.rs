//! Files that are no JSON, judged by a schema as they are read: tables and NDJSON row by row, others as one value.

use super::schema::Schema;
use crate::base::path::RelPath;
use crate::base::source::Source;
use crate::expr::scope::{Format, lines, parse};
use crate::model::outcome::{Outcome, OutcomeKind};
use serde_json::Value;

/// Violations that are kept of one file.
const KEPT: usize = 20;

/// Judges a file. The schema of a table is that of one row, as the schema of NDJSON is that of one line; what is wrong is named by
/// its line. `path` is the schema's.
///
/// # Errors
/// That it cannot be read (`input`), or the violations (`schema`).
pub fn judge(
    schema: &Schema,
    path: &RelPath,
    source: &dyn Source,
    format: Format,
) -> Result<(), Outcome> {
    let content = parse(&source.name(), source, format)
        .map_err(|error| Outcome::new(OutcomeKind::Input, error.to_string()))?;
    let rows = match content {
        Value::Array(rows) if matches!(format, Format::Csv | Format::Ndjson) => rows,
        other => vec![other],
    };
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let left = KEPT - found.len();
        let violations = schema.violations(row, "", left).into_iter();
        found.extend(violations.map(|violation| (number, violation)));
        if found.len() >= KEPT {
            break;
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let lines = lines(source, format).unwrap_or_default();
    let name = source.name();
    let mut details: Vec<String> = Vec::new();
    for (number, violation) in found {
        let field = violation.pointer.trim_start_matches('/');
        let is_column =
            format == Format::Csv && field.is_empty() && violation.keyword == "required";
        let detail = if is_column {
            // What one row lacks, all do.
            let columns = rows.first().and_then(Value::as_object);
            let columns = columns.map(|row| row.keys().map(String::as_str).collect::<Vec<_>>());
            let what = violation.message.replace(" in object", " in the header");
            format!(
                "{name}:1: {what}, which has {}",
                columns.unwrap_or_default().join(", ")
            )
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
            format!("{at}: {field}{}", violation.message)
        };
        if !details.contains(&detail) {
            details.push(detail);
        }
    }
    let first = details.remove(0);
    let message = format!("{first} (by {path})");
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(details))
}
