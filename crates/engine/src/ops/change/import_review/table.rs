//! The table of corrections: what it has already, what it may have, and adding rows to it.

use super::Correction;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope::{append_rows, header, lines, parse};
use milepost_core::model::stage::Input;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::read;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The columns beside those that name records.
const COLUMNS: [&str; 4] = ["field", "value", "who", "why"];

/// The table of corrections.
pub(super) struct Table<'a> {
    /// The path, as people know it.
    pub(super) path: FilePath,
    input: &'a Input,
    /// The content; empty if there is no file.
    text: String,
    /// The columns, in the order of the declaration or the header.
    columns: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    line: u64,
    cells: Map<String, Value>,
}

impl<'a> Table<'a> {
    /// Reads the table, which may not exist yet.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what is declared.
    pub(super) fn read(
        opened: &OpenProject,
        input: &'a Input,
        path: FilePath,
    ) -> Result<Self, OpsError> {
        let reading = input.reading(&path);
        let declared = input.columns.as_ref();
        let declared = declared.map(|columns| columns.names().map(str::to_owned).collect());
        let place = opened
            .files
            .resolve(&path)
            .map_err(OpsError::unreadable(&path))?;
        if !place.exists() {
            return Ok(Self {
                columns: declared.unwrap_or_default(),
                path,
                input,
                text: String::new(),
                rows: Vec::new(),
            });
        }
        let wrong = |error: String| OpsError::World(error);
        let source = opened
            .files
            .source(&path)
            .map_err(OpsError::unreadable(&path))?;
        let content = parse(&path.to_string(), &*source, &reading);
        let content = content.map_err(|error| wrong(error.to_string()))?;
        let lines = lines(&*source, reading.format).map_err(|error| wrong(error.to_string()))?;
        let columns = match declared {
            Some(columns) => columns,
            None => header(&*source).map_err(|error| wrong(error.to_string()))?,
        };
        let rows = match content {
            Value::Array(rows) => rows,
            _ => Vec::new(),
        };
        let rows = rows
            .into_iter()
            .zip(lines)
            .filter_map(|(row, line)| match row {
                Value::Object(cells) => Some(Row { line, cells }),
                _ => None,
            });
        Ok(Self {
            text: read::text(&place).map_err(OpsError::unreadable(&path))?,
            rows: rows.collect(),
            path,
            input,
            columns,
        })
    }

    /// Returns the column of the key: the first.
    ///
    /// # Errors
    /// When neither the declaration nor the file names columns, or one is missing.
    pub(super) fn key(&self) -> Result<String, OpsError> {
        let has_all = COLUMNS
            .iter()
            .all(|name| self.columns.iter().any(|column| column == name));
        match self.columns.first() {
            Some(key) if has_all && !COLUMNS.contains(&key.as_str()) => Ok(key.clone()),
            _ => Err(OpsError::World(format!(
                "{}: expected a header with the key, then {}",
                self.path,
                COLUMNS.join(", ")
            ))),
        }
    }

    /// Returns the corrections that are new, and those that the table has. Those that contradict the table or each other are
    /// problems.
    pub(super) fn sort(
        &self,
        corrections: Vec<Correction>,
        problems: &mut Vec<String>,
    ) -> (Vec<Correction>, Vec<Correction>) {
        let (mut added, mut known) = (Vec::<Correction>::new(), Vec::new());
        for correction in corrections {
            let Correction {
                cell,
                column,
                target,
                field,
                value,
                ..
            } = &correction;
            let row = self
                .rows
                .iter()
                .find(|row| row.text(column) == *target && row.text("field") == *field);
            let before = added.iter().find(|other| {
                other.column == *column && other.target == *target && other.field == *field
            });
            let (old, place) = match (row, before) {
                (Some(row), _) => (row.text("value"), format!("{}:{}", self.path, row.line)),
                (None, Some(before)) => (before.value.clone(), before.cell.clone()),
                (None, None) => {
                    added.push(correction);
                    continue;
                }
            };
            if !is_same(&old, value) {
                problems.push(format!(
                    "{cell}: `{field}` of `{target}` is `{value}`, but {place} sets `{old}`: change or remove one of them"
                ));
            } else if row.is_some() {
                known.push(correction);
            }
        }
        (added, known)
    }

    /// Checks rows by the schema of the table.
    ///
    /// # Errors
    /// When the schema is wrong.
    pub(super) fn check(
        &self,
        added: &[Correction],
        problems: &mut Vec<String>,
    ) -> Result<(), OpsError> {
        let Some(schema) = &self.input.schema else {
            return Ok(());
        };
        let schema = Schemas::default().get(schema);
        let schema = schema.map_err(|error| OpsError::World(error.to_string()))?;
        for correction in added {
            let cells = cells_of(correction);
            let value = |column: &String| match cells.get(column.as_str()) {
                Some(cell) if !cell.is_empty() => Value::from(cell.as_str()),
                _ => Value::Null,
            };
            let row = self
                .columns
                .iter()
                .map(|column| (column.clone(), value(column)));
            let row = Value::Object(row.collect());
            for violation in schema.violations(&row, "", 5) {
                let column = violation.pointer.trim_start_matches('/');
                let cell = if column == correction.column {
                    &correction.target_cell
                } else {
                    &correction.cell
                };
                let (field, named) = (&correction.field, &correction.column);
                problems.push(match self.columns.first() {
                    Some(key) if column == "field" && key != named => format!(
                        "{cell}: `{field}` cannot be corrected by `{named}`: add a row with a `{key}` for each element"
                    ),
                    _ => format!("{cell}: {column}: {}", violation.message),
                });
            }
        }
        Ok(())
    }

    /// Returns the digest of the file; `None` if there is no file.
    pub(super) fn digest(&self) -> Option<Digest> {
        (!self.text.is_empty()).then(|| Digest::of(&self.text))
    }

    /// Adds rows at the end of the file, and returns its digest.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn add(
        &self,
        opened: &OpenProject,
        added: &[Correction],
    ) -> Result<Digest, OpsError> {
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let rows: Vec<BTreeMap<&str, String>> = added.iter().map(cells_of).collect();
        let text = append_rows(&self.text, &columns, &rows);
        let text = text.map_err(OpsError::unreadable(&self.path))?;
        let place = opened
            .files
            .resolve(&self.path)
            .map_err(OpsError::unreadable(&self.path))?;
        // A link stays one: its target is replaced.
        let place = std::fs::canonicalize(&place).unwrap_or(place);
        if let Some(folder) = place.parent() {
            opened.disk.create_dir_all(folder)?;
        }
        opened.disk.write_atomic(&place, text.as_bytes())?;
        Ok(Digest::of(&text))
    }
}

impl Row {
    fn text(&self, column: &str) -> String {
        match self.cells.get(column) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }
}

/// Returns the cells of a row by their columns.
fn cells_of(correction: &Correction) -> BTreeMap<&str, String> {
    let Correction {
        column,
        target,
        field,
        value,
        who,
        why,
        ..
    } = correction;
    BTreeMap::from([
        (column.as_str(), target.clone()),
        ("field", field.clone()),
        ("value", value.clone()),
        ("who", who.clone()),
        ("why", why.clone()),
    ])
}

/// Returns true if two cells have the same text or the same number.
fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    one == other || number(one).is_some_and(|one| number(other) == Some(one))
}
