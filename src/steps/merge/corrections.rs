//! People's corrections of records: they win over what was answered, and are shown as such.

use crate::expr::scope::Scope;
use crate::model::outcome::Outcome;
use crate::steps::work::input_failure;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a table of corrections, by key. The first column is the key; the others are `field`, `value`, `who`, `why`.
#[derive(Default)]
pub struct Corrections {
    /// The rows of a key, each with its place: `inputs/corrections.csv:7`.
    by_key: BTreeMap<String, Vec<(String, Map<String, Value>)>>,
    used: BTreeSet<String>,
}

impl Corrections {
    /// The rows of an input; none when it is absent.
    ///
    /// # Errors
    /// When it cannot be read or a row lacks a column.
    pub fn of(name: &str, scope: &Scope) -> Result<Self, Outcome> {
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
        let mut found = Self::default();
        let (file, lines) = scope
            .lines(name)
            .unwrap_or_else(|| (name.to_owned(), Vec::new()));
        for (number, row) in rows.into_iter().enumerate() {
            let Value::Object(row) = row else { continue };
            let place = match lines.get(number) {
                Some(line) => format!("{file}:{line}"),
                None => format!("{file}, row {}", number + 1),
            };
            for column in ["field", "value", "who", "why"] {
                if !row.contains_key(column) {
                    return Err(input_failure(&place, format!("no column `{column}`")));
                }
            }
            let key = row
                .values()
                .next()
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            found.by_key.entry(key).or_default().push((place, row));
        }
        Ok(found)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The corrected record, if its key has corrections.
    ///
    /// # Errors
    /// When a field is not there.
    pub fn apply(&mut self, key: &str, mut record: Value) -> Result<Option<Value>, Outcome> {
        let Some(rows) = self.by_key.get(key) else {
            return Ok(None);
        };
        self.used.insert(key.to_owned());
        let mut notes = Vec::new();
        for (at, row) in rows {
            let field = row["field"].as_str().unwrap_or_default();
            let pointer = format!("/{}", field.replace('.', "/"));
            let Some(place) = place(&mut record, &pointer) else {
                return Err(input_failure(
                    at,
                    format!("the element has no field `{field}`"),
                ));
            };
            let old = place.clone();
            let text = row["value"].as_str().unwrap_or_default();
            *place = value_like(text, &old);
            if old.is_number() && !(place.is_number() || place.is_null()) {
                let point = text.replace(',', ".");
                let such = match point.parse::<f64>() {
                    Ok(_) => format!(": write {point}"),
                    Err(_) => ", such as 12.5".to_owned(),
                };
                let why = format!("`{field}` is a number, and `{text}` is none{such}");
                return Err(input_failure(at, why));
            }
            notes.push(json!({ "field": field, "from": old, "to": *place, "who": row["who"], "why": row["why"] }));
        }
        if let Value::Object(fields) = &mut record {
            fields.insert("corrections".into(), Value::Array(notes));
        }
        Ok(Some(record))
    }

    /// That every row found its element.
    ///
    /// # Errors
    /// When an element that a row names is not among the records.
    pub fn all_used(&self) -> Result<(), Outcome> {
        let Some((key, rows)) = self
            .by_key
            .iter()
            .find(|(key, _)| !self.used.contains(*key))
        else {
            return Ok(());
        };
        let at = rows.first().map_or("", |(at, _)| at.as_str());
        Err(input_failure(at, format!("no element is `{key}`")))
    }
}

/// The place of a field. Where an object stands null, as an absent material does, the object is made.
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

/// Text of a table as a value of the kind that it replaces: text stays text, else what it reads as.
fn value_like(text: &str, old: &Value) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    if old.is_string() {
        return Value::from(text);
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
