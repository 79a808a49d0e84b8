//! The table of corrections: what it has already, what it may have, and adding rows to it.

use super::{Correction, Destination};
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::cells::{guarded, unguarded};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope::{append_rows, header, lines, parse};
use milepost_core::expr::template::text;
use milepost_store::check::schema::{Schema, Violation};
use milepost_store::check::schemas::Schemas;
use milepost_store::store::read;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::sync::Arc;

/// The columns beside those that name records.
const COLUMNS: [&str; 4] = ["field", "value", "who", "why"];

/// The most bytes that are hashed to find out which rows are new.
const HASHED: usize = 64 << 20;

/// The cells of a row.
pub(crate) struct TableCells<'a>(&'a Row);

impl TableCells<'_> {
    /// Returns the text in a column; empty if there is none.
    pub(crate) fn text(&self, column: &str) -> String {
        unguarded(&self.0.text(column)).to_owned()
    }
}

/// The table of corrections.
pub(crate) struct Table {
    /// The path, as people know it.
    pub(crate) path: FilePath,
    /// The schema of a row.
    schema: Option<Arc<Schema>>,
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

impl Table {
    /// Reads the table, which may not exist yet.
    ///
    /// # Errors
    /// When the file cannot be read or is not what is declared, or the schema is wrong.
    pub(crate) fn read(
        opened: &OpenProject,
        destination: &Destination<'_>,
    ) -> Result<Self, OpsError> {
        let wrong = |error: String| OpsError::World(error);
        let (input, path) = (destination.input, destination.path.clone());
        let reading = input.reading(&path);
        let schema = input.schema.as_ref();
        let schema = schema.map(|schema| Schemas::default().get(schema));
        let schema = schema
            .transpose()
            .map_err(|error| wrong(error.to_string()))?;
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
                schema,
                text: String::new(),
                rows: Vec::new(),
            });
        }
        // Read first: if a person modifies the file before its rows are read, `check_unmodified` refuses it.
        let text = read::text(&place).map_err(OpsError::unreadable(&path))?;
        let source = opened
            .files
            .source(&path)
            .map_err(OpsError::unreadable(&path))?;
        let content = parse(&path.to_string(), &*source, &reading);
        let content = content.map_err(|error| wrong(error.to_string()))?;
        let lines = lines(&*source, &reading).map_err(|error| wrong(error.to_string()))?;
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
            text,
            rows: rows.collect(),
            path,
            schema,
            columns,
        })
    }

    /// Returns the column of the key: the first.
    ///
    /// # Errors
    /// When neither the declaration nor the file names columns, or one is missing.
    pub(crate) fn key(&self) -> Result<String, OpsError> {
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
    pub(crate) fn sort(
        &self,
        corrections: Vec<Correction>,
        problems: &mut Vec<String>,
    ) -> (Vec<Correction>, Vec<Correction>) {
        let mut rows = HashMap::new();
        self.each_row(&mut |line, (column, target), cells| {
            let name = (column.to_owned(), target, cells.text("field"));
            rows.entry(name).or_insert((line, cells.text("value")));
        });
        let (mut added, mut known) = (Vec::<Correction>::new(), Vec::new());
        let mut before = HashMap::new();
        for correction in corrections {
            let Correction {
                cell,
                column,
                target,
                field,
                value,
                ..
            } = &correction;
            let name = (column.clone(), target.clone(), field.clone());
            let row = rows.get(&name);
            let (old, place) = match (row, before.get(&name)) {
                (Some((line, old)), _) => (old, format!("{}:{line}", self.path)),
                (None, Some((cell, old))) => (old, String::clone(cell)),
                (None, None) => {
                    before.insert(name, (cell.clone(), value.clone()));
                    added.push(correction);
                    continue;
                }
            };
            if !is_same(old, value) {
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
    pub(crate) fn check(&self, added: &[Correction], problems: &mut Vec<String>) {
        for correction in added {
            for violation in self.violations(&cells_of(correction)) {
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
    }

    /// Returns true if a row that names records by this column may correct the field.
    pub(crate) fn takes(&self, field: &str, column: &str) -> bool {
        let cells = [(column, "-"), ("field", field), ("who", "-"), ("why", "-")];
        let cells = cells.map(|(column, cell)| (column, cell.to_owned()));
        let violations = self.violations(&BTreeMap::from(cells));
        violations.iter().all(|found| found.pointer != "/field")
    }

    /// Returns what the schema of the table forbids in a row.
    fn violations(&self, cells: &BTreeMap<&str, String>) -> Vec<Violation> {
        let Some(schema) = &self.schema else {
            return Vec::new();
        };
        let value = |column: &String| match cells.get(column.as_str()) {
            Some(cell) if !cell.is_empty() => Value::from(cell.as_str()),
            _ => Value::Null,
        };
        let row = self
            .columns
            .iter()
            .map(|column| (column.clone(), value(column)));
        schema.violations(&Value::Object(row.collect()), "", 5)
    }

    /// Passes each row to `take`: its line, the column that names records with its value, and its cells by their columns.
    #[expect(clippy::type_complexity)]
    pub(crate) fn each_row(&self, take: &mut dyn FnMut(u64, (&str, String), &TableCells<'_>)) {
        for row in &self.rows {
            let cells = TableCells(row);
            let names = self.columns.iter().map(String::as_str);
            let names = names.filter(|column| !COLUMNS.contains(column));
            for column in names {
                let target = cells.text(column);
                if !target.is_empty() {
                    take(row.line, (column, target), &cells);
                }
            }
        }
    }

    /// Returns how many rows the file has more than when it had this digest; `None` if its earlier rows are not the same. Without a
    /// digest, there was no file.
    pub(crate) fn rows_since(&self, digest: Option<Digest>) -> Option<u64> {
        let Some(digest) = digest else {
            return Some(self.rows.len() as u64);
        };
        let mut starts = vec![0];
        starts.extend(self.text.match_indices('\n').map(|(at, _)| at + 1));
        let ends = self.rows.iter().filter_map(|row| {
            let line = usize::try_from(row.line).ok()?;
            starts.get(line.checked_sub(1)?).copied()
        });
        let mut ends: Vec<usize> = ends.collect();
        ends.push(self.text.len());
        let mut hashed = 0;
        for (since, end) in ends.into_iter().rev().enumerate() {
            let text = &self.text[..end];
            let bare = text.trim_end_matches(['\r', '\n']);
            if Digest::of(text) == digest || Digest::of(bare) == digest {
                return Some(since as u64);
            }
            hashed += end;
            if hashed > HASHED {
                break;
            }
        }
        None
    }

    /// Returns the digest of the file; `None` if there is no file.
    pub(crate) fn digest(&self) -> Option<Digest> {
        (!self.text.is_empty()).then(|| Digest::of(&self.text))
    }

    /// Returns the content of the file with more rows at its end.
    ///
    /// # Errors
    /// When the file is not a CSV file.
    pub(crate) fn with_rows(&self, added: &[Correction]) -> Result<String, OpsError> {
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let rows = added.iter().map(|correction| {
            let mut cells = cells_of(correction);
            for cell in cells.values_mut() {
                *cell = guarded(cell).into_owned();
            }
            cells
        });
        let rows: Vec<BTreeMap<&str, String>> = rows.collect();
        append_rows(&self.text, &columns, &rows).map_err(OpsError::unreadable(&self.path))
    }

    /// Refuses a table that a person has modified since it was read.
    ///
    /// # Errors
    /// When it was modified, or cannot be read.
    pub(crate) fn check_unmodified(&self, opened: &OpenProject) -> Result<(), OpsError> {
        let place = opened.files.resolve(&self.path);
        let place = place.map_err(OpsError::unreadable(&self.path))?;
        let text = match read::text(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.map_err(OpsError::unreadable(&self.path))?,
        };
        if text != self.text {
            return Err(OpsError::World(format!(
                "{} was modified while corrections were added: nothing was added; try again",
                self.path
            )));
        }
        Ok(())
    }

    /// Replaces the content of the file.
    ///
    /// # Errors
    /// When a person has modified the file since it was read, or the disk fails.
    pub(crate) fn write(&self, opened: &OpenProject, text: &str) -> Result<(), OpsError> {
        let place = opened.files.resolve(&self.path);
        let place = place.map_err(OpsError::unreadable(&self.path))?;
        // A link stays one: its target is replaced.
        let place = std::fs::canonicalize(&place).unwrap_or(place);
        if let Some(folder) = place.parent() {
            opened.disk.create_dir_all(folder)?;
        }
        self.check_unmodified(opened)?;
        opened.disk.write_atomic(&place, text.as_bytes())?;
        Ok(())
    }
}

impl Row {
    fn text(&self, column: &str) -> String {
        self.cells.get(column).map(text).unwrap_or_default()
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
