//! Corrections of records by people. They override answers and are marked in the record.

use crate::steps::batch_context::input_failure;
use milepost_core::base::cells::unguarded;
use milepost_core::base::words::count;
use milepost_core::expr::json;
use milepost_core::expr::place::listed;
use milepost_core::expr::scope::Scope;
use milepost_core::expr::template::text;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

/// The rows of a correction table. The first column is the key of a record; the others are `field`, `value`, `who`, `why`, and the
/// shared key if the step has one.
#[derive(Default)]
pub(crate) struct Corrections<'a> {
    /// The path of the table.
    name: String,
    /// The field that several records share.
    shared_key: Option<&'a str>,
    rows: Vec<CorrectionRow>,
    /// The rows for a key.
    by_key: HashMap<String, Vec<usize>>,
    /// The rows for all records with a shared key.
    by_shared_key: HashMap<String, Vec<usize>>,
    /// The rows that apply to a record.
    used: BTreeSet<usize>,
    /// Errors with their lines; all are reported at once.
    wrong: BTreeSet<(u64, String)>,
}

const COLUMNS: [&str; 4] = ["field", "value", "who", "why"];

/// The most rows that are named in warnings.
const SHOWN: usize = 20;

struct CorrectionRow {
    line: u64,
    /// The column that names the records, and its value.
    target: (String, String),
    field: String,
    cells: Map<String, Value>,
}

impl<'a> Corrections<'a> {
    /// Reads the rows of an input; empty if it is absent.
    ///
    /// # Errors
    /// When the input cannot be read or lacks a column.
    pub(crate) fn of(
        name: &str,
        shared_key: Option<&'a str>,
        scope: &Scope,
    ) -> Result<Self, Outcome> {
        let rows = match scope.value(name)? {
            Value::Null => return Ok(Self::default()),
            Value::Array(rows) => rows,
            _ => {
                return Err(input_failure(
                    name,
                    "expected a table with a row for each correction",
                ));
            }
        };
        let (file, lines) = scope
            .lines(name)
            .unwrap_or_else(|| (name.to_owned(), Vec::new()));
        if let Some(header) = scope.header(name)? {
            check_header(&file, &header, shared_key)?;
        }
        let mut found = Self {
            name: file,
            shared_key,
            ..Self::default()
        };
        for (number, row) in rows.into_iter().enumerate() {
            let Value::Object(cells) = row else { continue };
            let line = lines.get(number).copied().unwrap_or(number as u64 + 2);
            for column in COLUMNS {
                if !cells.contains_key(column) {
                    let place = format!("{}:{line}", found.name);
                    return Err(input_failure(&place, format!("no column `{column}`")));
                }
            }
            match found.target(&cells) {
                Ok((target, is_shared)) => found.add(line, target, is_shared, cells),
                Err(why) => {
                    found.wrong.insert((line, why));
                }
            }
        }
        Ok(found)
    }

    /// Returns the column that names the records of a row and its value, and whether it is the shared key.
    fn target(&self, cells: &Map<String, Value>) -> Result<((String, String), bool), String> {
        let column = cells.keys().next().cloned().unwrap_or_default();
        let key = cell_text(cells, &column);
        let Some(shared) = self.shared_key else {
            return match key.as_str() {
                "" => Err(format!("`{column}` is empty")),
                _ => Ok(((column, key), false)),
            };
        };
        let shared_key = cell_text(cells, shared);
        match (key.as_str(), shared_key.as_str()) {
            ("", "") => Err(format!(
                "expected a value in `{column}` or `{shared}`, found none"
            )),
            (_, "") => Ok(((column, key), false)),
            ("", _) => Ok(((shared.to_owned(), shared_key), true)),
            _ => Err(format!(
                "expected a value in `{column}` or `{shared}`, found both: remove one"
            )),
        }
    }

    fn add(
        &mut self,
        line: u64,
        target: (String, String),
        is_shared: bool,
        cells: Map<String, Value>,
    ) {
        let field = cell_text(&cells, "field");
        let of_target = if is_shared {
            &mut self.by_shared_key
        } else {
            &mut self.by_key
        };
        let of_target = of_target.entry(target.1.clone()).or_default();
        let first = of_target.iter().find(|&&row| self.rows[row].field == field);
        if let Some(&first) = first {
            let why = format!(
                "`{field}` of `{}` is corrected in line {} already: keep one of the two",
                target.1, self.rows[first].line
            );
            self.wrong.insert((line, why));
        }
        of_target.push(self.rows.len());
        self.rows.push(CorrectionRow {
            line,
            target,
            field,
            cells,
        });
    }

    /// Returns true if there are no corrections.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows for a record in the order in which they apply. Those for its key win over those for its shared key.
    fn rows_for(&mut self, key: &str, record: &Value) -> Vec<usize> {
        let none = Vec::new();
        let of_key = self.by_key.get(key).unwrap_or(&none);
        let shared = self.shared_key.map(|name| text_of(record.get(name)));
        let shared = shared.and_then(|shared| self.by_shared_key.get(&shared));
        let shared = shared.unwrap_or(&none);
        self.used.extend(shared.iter().chain(of_key));
        let is_other = |row: &&usize| {
            let field = &self.rows[**row].field;
            of_key.iter().all(|&own| self.rows[own].field != *field)
        };
        shared
            .iter()
            .filter(is_other)
            .chain(of_key)
            .copied()
            .collect()
    }

    /// Returns the corrected record if corrections apply to it. `key_of` returns the key of a record, which must not change. An
    /// invalid row changes nothing; [`Corrections::finish`] reports it.
    pub(crate) fn apply(
        &mut self,
        key: &str,
        mut record: Value,
        key_of: &dyn Fn(&Value) -> Option<String>,
    ) -> Option<Value> {
        let rows = self.rows_for(key, &record);
        if rows.is_empty() {
            return None;
        }
        let mut notes = Vec::new();
        for row in rows {
            let CorrectionRow {
                line,
                target: (column, target),
                field,
                cells,
            } = &self.rows[row];
            let pointer = format!("/{}", field.replace('.', "/"));
            let Some(place) = place(&mut record, &pointer) else {
                let why = format!("the element has no field `{field}`");
                self.wrong.insert((*line, why));
                continue;
            };
            let old = place.clone();
            let text = cell_text(cells, "value");
            *place = value_like(&text, &old);
            if old.is_number() && !(place.is_number() || place.is_null()) {
                let point = text.replace(',', ".");
                let such = match point.parse::<f64>() {
                    Ok(_) => format!(": write {point}"),
                    Err(_) => ": write one such as 12.5".to_owned(),
                };
                let why = format!("`{field}`: expected a number, found `{text}`{such}");
                self.wrong.insert((*line, why));
            }
            let new = place.clone();
            if key_of(&record).as_deref() != Some(key) {
                let why = format!("`{field}` is part of the key and cannot be corrected");
                self.wrong.insert((*line, why));
                return None;
            }
            let mut note = json!({ "field": field, "from": old, "to": new, "who": cell_text(cells, "who"), "why": cell_text(cells, "why") });
            if self.shared_key.is_some_and(|name| name == column) {
                note[column] = target.as_str().into();
            }
            notes.push(note);
        }
        if let Value::Object(fields) = &mut record {
            fields.insert("corrections".into(), Value::Array(notes));
        }
        Some(record)
    }

    /// Returns a warning for each row that applies to no record: the records may have changed since it was written.
    ///
    /// # Errors
    /// All invalid rows with their lines.
    pub(crate) fn finish(self) -> Result<Vec<String>, Outcome> {
        let mut lines = self
            .wrong
            .iter()
            .map(|(line, why)| format!("{}:{line}: {why}", self.name));
        if let Some(first) = lines.next() {
            let details: Vec<String> = lines.collect();
            return Err(Outcome::new(OutcomeKind::Input, first).with_details(details));
        }
        let unused = |(at, _): &(usize, &CorrectionRow)| !self.used.contains(at);
        let unused: Vec<&CorrectionRow> = self
            .rows
            .iter()
            .enumerate()
            .filter(unused)
            .map(|(_, row)| row)
            .collect();
        let warning = |row: &&CorrectionRow| {
            let CorrectionRow {
                line,
                target: (column, target),
                field,
                ..
            } = row;
            let name = &self.name;
            format!(
                "{name}:{line}: no element has the {column} `{target}`, so its `{field}` is not corrected"
            )
        };
        let mut warnings: Vec<String> = unused.iter().take(SHOWN).map(warning).collect();
        if unused.len() > SHOWN {
            let more = (unused.len() - SHOWN) as u64;
            let more = count(more, "more correction matches", "more corrections match");
            warnings.push(format!("{}: {more} no element", self.name));
        }
        Ok(warnings)
    }
}

/// Checks the header of a table, which may have no rows: its first column is the key.
fn check_header(file: &str, header: &[String], shared_key: Option<&str>) -> Result<(), Outcome> {
    let (key, others) = header
        .split_first()
        .map_or(("", header), |(key, others)| (key, others));
    let has_all = COLUMNS
        .iter()
        .all(|column| others.iter().any(|other| other == column));
    if has_all && !COLUMNS.contains(&key) && shared_key != Some(key) {
        return Ok(());
    }
    let found = match header {
        [] => "no header".to_owned(),
        header => listed(header.iter().map(String::as_str)),
    };
    let expected = listed(COLUMNS);
    Err(input_failure(
        &format!("{file}:1"),
        format!("expected a column for the key, then {expected}; found {found}"),
    ))
}

/// Returns the text of a cell, as it was before it was guarded from spreadsheets.
fn cell_text(cells: &Map<String, Value>, column: &str) -> String {
    unguarded(&text_of(cells.get(column))).to_owned()
}

fn text_of(cell: Option<&Value>) -> String {
    cell.map(text).unwrap_or_default()
}

/// Returns the value of a field. A null on the way, such as an absent material, becomes an object.
fn place<'a>(record: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    let (parent, field) = pointer.rsplit_once('/')?;
    let parent = if parent.is_empty() {
        record
    } else {
        record.pointer_mut(parent)?
    };
    if parent.is_null() {
        *parent = Value::Object(Map::new());
        return parent
            .as_object_mut()
            .map(|fields| fields.entry(field).or_insert(Value::Null));
    }
    parent.as_object_mut()?.get_mut(field)
}

/// Converts the text of a cell to the type of the value that it replaces.
fn value_like(text: &str, old: &Value) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    if old.is_string() {
        return Value::from(text);
    }
    json::parse(text).unwrap_or_else(|_| Value::from(text))
}
