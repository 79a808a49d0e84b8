//! Compares two lists of records by key, each read as a stream: what is held is a digest of each record and its key,
//! some 50 bytes a record, and what is shown.

use milepost_core::base::digest::Digest;
use milepost_core::expr::select::{Select, Step};
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;

/// A list of records: the files that hold it, in order, and where they and their keys stand.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    /// The files.
    pub(crate) files: Vec<PathBuf>,
    /// The records in a file.
    pub(crate) items: Select,
    /// The key in a record.
    pub(crate) key: Select,
}

/// How two lists differ.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ElementsDiff {
    /// The key that records are known by.
    pub key: String,
    /// Records that are the same.
    pub same: u64,
    /// Records that only the new list has.
    pub added: Keys,
    /// Records that only the old list has.
    pub removed: Keys,
    /// Records that both have, and that differ.
    pub changed: u64,
    /// The first of them.
    pub changes: Vec<ElementChange>,
}

/// Keys: how many, and the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Keys {
    /// How many.
    pub count: u64,
    /// The first, in the order of the list.
    pub first: Vec<String>,
}

/// A record that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ElementChange {
    /// Its key.
    pub key: String,
    /// The fields that differ.
    pub fields: Vec<FieldChange>,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FieldChange {
    /// Where: a JSON pointer into the record or the document.
    pub field: String,
    /// What it was; none: it was not there.
    pub old: Option<Value>,
    /// What it is; none: it is not there.
    pub new: Option<Value>,
}

/// What a record is known by in the index: of its key, and which of several with that key it is.
type Id = (u64, u32);

/// Compares. At most `limit` keys and changes of each sort are kept.
///
/// # Errors
/// When a file cannot be read, or is not of that form.
pub(crate) fn compare(old: &Records, new: &Records, limit: usize) -> Result<ElementsDiff, String> {
    let mut diff = ElementsDiff {
        key: old.key.to_string(),
        ..ElementsDiff::default()
    };
    let mut index: HashMap<Id, u64> = HashMap::new();
    each(old, &mut |id, _, value| {
        index.insert(id, hash(&canonical(value)));
    })?;
    let mut changed: HashSet<Id> = HashSet::new();
    each(new, &mut |id, key, value| match index.remove(&id) {
        None => diff.added.take(key, limit),
        Some(was) if was == hash(&canonical(value)) => diff.same += 1,
        Some(_) => {
            diff.changed += 1;
            if changed.len() < limit {
                changed.insert(id);
            }
        }
    })?;
    // What is left of the index is only in the old list.
    let mut olds: HashMap<Id, Value> = HashMap::new();
    each(old, &mut |id, key, value| {
        if index.contains_key(&id) {
            diff.removed.take(key, limit);
        } else if changed.contains(&id) {
            olds.insert(id, value.clone());
        }
    })?;
    if !changed.is_empty() {
        each(new, &mut |id, key, value| {
            if let Some(was) = olds.remove(&id) {
                let mut fields = Vec::new();
                differing("", Some(&was), Some(value), &mut fields);
                diff.changes.push(ElementChange {
                    key: shown(key),
                    fields,
                });
            }
        })?;
    }
    Ok(diff)
}

impl Keys {
    fn take(&mut self, key: &Value, limit: usize) {
        self.count += 1;
        if self.first.len() < limit {
            self.first.push(shown(key));
        }
    }
}

/// Every record with its key and its place in the index.
fn each(records: &Records, take: &mut dyn FnMut(Id, &Value, &Value)) -> Result<(), String> {
    let mut seen: HashMap<u64, u32> = HashMap::new();
    for path in &records.files {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| fail(&error))?;
        let read = records.items.read::<String>(file, &mut |value| {
            let key = key_of(&value, &records.key);
            let id = hash(&key.to_string());
            let nth = seen.entry(id).or_default();
            *nth += 1;
            take((id, *nth), &key, &value);
            Ok(())
        });
        read.map_err(|error| fail(&error))?;
    }
    Ok(())
}

/// The key of a record; null where it has none.
fn key_of(value: &Value, key: &Select) -> Value {
    let mut at = value;
    for step in key.steps() {
        match step {
            Step::Field(name) => at = at.get(name).unwrap_or(&Value::Null),
            Step::Each => return Value::Null,
        }
    }
    at.clone()
}

fn hash(text: &str) -> u64 {
    let digest = Digest::of(text);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.bytes()[..8]);
    u64::from_le_bytes(first)
}

/// A value as text in which the order of fields makes no difference.
fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

fn shown(key: &Value) -> String {
    match key {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The values that differ, by JSON pointer. Objects and lists of equal length are compared inside.
pub(crate) fn differing(
    pointer: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Vec<FieldChange>,
) {
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (key, value) in old {
                let place = format!("{pointer}/{}", escaped(key));
                differing(&place, Some(value), new.get(key), found);
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                differing(
                    &format!("{pointer}/{}", escaped(key)),
                    None,
                    Some(value),
                    found,
                );
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                differing(&format!("{pointer}/{at}"), Some(old), Some(new), found);
            }
        }
        (old, new) if old == new => {}
        (old, new) => found.push(FieldChange {
            field: pointer.to_owned(),
            old: old.cloned(),
            new: new.cloned(),
        }),
    }
}

/// A key in a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
