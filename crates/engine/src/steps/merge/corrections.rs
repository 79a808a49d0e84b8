//! Corrections of records by people. They override answers and are marked in the record.

use crate::steps::batch_context::input_failure;
use milepost_core::expr::json;
use milepost_core::expr::place::listed;
use milepost_core::expr::scope::Scope;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a correction table by key. The first column is the key; the others are `field`, `value`, `who`, `why`.
#[derive(Default)]
pub(crate) struct Corrections {
    /// The path of the table.
    name: String,
    by_key: BTreeMap<String, Vec<CorrectionRow>>,
    used: BTreeSet<String>,
    /// Errors with their lines; all are reported at once.
    wrong: BTreeSet<(u64, String)>,
}

const COLUMNS: [&str; 4] = ["field", "value", "who", "why"];

struct CorrectionRow {
    line: u64,
    field: String,
    cells: Map<String, Value>,
}

impl Corrections {
    /// Reads the rows of an input; empty if it is absent.
    ///
    /// # Errors
    /// When the input cannot be read or lacks a column.
    pub(crate) fn of(name: &str, scope: &Scope) -> Result<Self, Outcome> {
        let rows = match scope.value(name)? {
            Value::Null => return Ok(Self::default()),
            Value::Array(rows) => rows,
            _ => {
                return Err(input_failure(
                    name,
                    "a table with a row for each correction was expected",
                ));
            }
        };
        let (file, lines) = scope
            .lines(name)
            .unwrap_or_else(|| (name.to_owned(), Vec::new()));
        if let Some(header) = scope.header(name)? {
            check_header(&file, &header)?;
        }
        let mut found = Self {
            name: file,
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
            let key = text_of(cells.values().next());
            let field = text_of(cells.get("field"));
            let of_key = found.by_key.entry(key.clone()).or_default();
            if let Some(first) = of_key.iter().find(|row| row.field == field) {
                let why = format!(
                    "`{field}` of `{key}` is corrected in line {} already: keep one of the two",
                    first.line
                );
                found.wrong.insert((line, why));
            }
            of_key.push(CorrectionRow { line, field, cells });
        }
        Ok(found)
    }

    /// Returns true if there are no corrections.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns the corrected record if its key has corrections. `key_of` returns the key of a record, which must not change. An
    /// invalid row changes nothing; [`Corrections::all_used`] reports it.
    pub(crate) fn apply(
        &mut self,
        key: &str,
        mut record: Value,
        key_of: &dyn Fn(&Value) -> Option<String>,
    ) -> Option<Value> {
        let rows = self.by_key.get(key)?;
        self.used.insert(key.to_owned());
        let mut notes = Vec::new();
        for CorrectionRow { line, field, cells } in rows {
            let pointer = format!("/{}", field.replace('.', "/"));
            let Some(place) = place(&mut record, &pointer) else {
                let why = format!("the element has no field `{field}`");
                self.wrong.insert((*line, why));
                continue;
            };
            let old = place.clone();
            let text = text_of(cells.get("value"));
            *place = value_like(&text, &old);
            if old.is_number() && !(place.is_number() || place.is_null()) {
                let point = text.replace(',', ".");
                let such = match point.parse::<f64>() {
                    Ok(_) => format!(": write {point}"),
                    Err(_) => ", such as 12.5".to_owned(),
                };
                let why = format!("`{field}` is a number, and `{text}` is none{such}");
                self.wrong.insert((*line, why));
            }
            let new = place.clone();
            if key_of(&record).as_deref() != Some(key) {
                let why = format!("`{field}` is part of the key and cannot be corrected");
                self.wrong.insert((*line, why));
                return None;
            }
            notes.push(json!({ "field": field, "from": old, "to": new, "who": cells["who"], "why": cells["why"] }));
        }
        if let Value::Object(fields) = &mut record {
            fields.insert("corrections".into(), Value::Array(notes));
        }
        Some(record)
    }

    /// Checks that every row was applied.
    ///
    /// # Errors
    /// All invalid rows with their lines.
    pub(crate) fn all_used(mut self) -> Result<(), Outcome> {
        for (key, rows) in &self.by_key {
            if !self.used.contains(key) {
                let why = format!("there is no element `{key}`");
                self.wrong
                    .extend(rows.iter().map(|row| (row.line, why.clone())));
            }
        }
        let mut lines = self
            .wrong
            .iter()
            .map(|(line, why)| format!("{}:{line}: {why}", self.name));
        let Some(first) = lines.next() else {
            return Ok(());
        };
        let details: Vec<String> = lines.collect();
        Err(Outcome::new(OutcomeKind::Input, first).with_details(details))
    }
}

/// Checks the header of a table, which may have no rows: its first column is the key.
fn check_header(file: &str, header: &[String]) -> Result<(), Outcome> {
    let (key, others) = header
        .split_first()
        .map_or(("", header), |(key, others)| (key, others));
    let has_all = COLUMNS
        .iter()
        .all(|column| others.iter().any(|other| other == column));
    if has_all && !COLUMNS.contains(&key) {
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

fn text_of(cell: Option<&Value>) -> String {
    match cell {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
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
