//! Compares two lists of records by key. Reads each as a stream, and keeps in memory a digest of each record and its key (about
//! 50 bytes a record) and the differences to show.

use milepost_core::base::digest::Digest;
use milepost_core::expr::json::plain_text;
use milepost_core::expr::pointer::below;
use milepost_core::expr::select::{PathStep, Select};
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// A list of records in one or more files.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    /// The files, in order.
    pub(crate) files: Vec<PathBuf>,
    /// Selects the records in a file.
    pub(crate) items: Select,
    /// Selects the key in a record.
    pub(crate) key: Select,
}

/// The differences of two lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ElementsDiff {
    /// The name of the key.
    pub key: String,
    /// The number of equal records.
    pub same: u64,
    /// Records that only the new list has.
    pub added: Keys,
    /// Records that only the old list has.
    pub removed: Keys,
    /// The number of records that differ.
    pub changed: u64,
    /// The first records that differ.
    pub changes: Vec<ElementChange>,
}

/// A number of keys, with the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Keys {
    /// The number of keys.
    pub count: u64,
    /// The first keys, in the order of the list.
    pub first: Vec<String>,
}

/// A record that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ElementChange {
    /// The record's key.
    pub key: String,
    /// The fields that differ.
    pub fields: Vec<FieldChange>,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FieldChange {
    /// The JSON pointer into the record or document.
    pub field: String,
    /// The old value; `None` if it was missing.
    pub old: Option<Value>,
    /// The new value; `None` if it is missing.
    pub new: Option<Value>,
}

/// Identifies a record: the digest of its key, and a number that tells records with equal keys apart.
type Id = (u64, u32);

/// Compares two lists. Keeps at most `limit` keys and changes of each kind.
///
/// # Errors
/// When a file cannot be read, or does not have the form.
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
    // The records left in the index are only in the old list.
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
                    key: plain_text(key),
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
            self.first.push(plain_text(key));
        }
    }
}

/// Calls `take` for each record with its identity and key.
fn each(records: &Records, take: &mut dyn FnMut(Id, &Value, &Value)) -> Result<(), String> {
    let mut seen: HashMap<u64, u32> = HashMap::new();
    for path in &records.files {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = read::open(path).map_err(|error| fail(&error))?;
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

/// Returns the key of a record; null if it has none.
fn key_of(value: &Value, key: &Select) -> Value {
    let mut at = value;
    for step in key.steps() {
        match step {
            PathStep::Field(name) => at = at.get(name).unwrap_or(&Value::Null),
            PathStep::Each => return Value::Null,
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

/// Returns a value as text that does not depend on the order of fields.
fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// Returns the values that differ, by JSON pointer. Compares inside objects and lists of equal length.
pub(crate) fn differing(
    pointer: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Vec<FieldChange>,
) {
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (key, value) in old {
                differing(&below(pointer, key), Some(value), new.get(key), found);
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                differing(&below(pointer, key), None, Some(value), found);
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
