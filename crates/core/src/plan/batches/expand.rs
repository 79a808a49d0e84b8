//! The batches of a stage: one for each item, or one for each combination of items.

use crate::base::natural::natural;
use crate::base::path::FilePath;
use crate::expr::scope::{Format, Reading};
use crate::model::stage::{Each, EachSource, Stage};
use crate::plan::batches::paths;
use crate::plan::batches::recorded::Recorded;
use crate::plan::batches::world::World;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// One batch of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The key; empty for the only batch of a stage without `each`.
    pub key: String,
    /// Its position, from 1.
    pub position: u64,
    /// Its items, by the name of the `each`.
    pub items: Vec<(String, BatchItem)>,
}

/// Returns the name of a batch for people: `classify/batch_1`, or `parse` for the only batch of a stage.
pub fn batch_name(stage: &str, batch: &str) -> String {
    if batch.is_empty() {
        stage.to_owned()
    } else {
        format!("{stage}/{batch}")
    }
}

/// An item of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchItem {
    /// A file.
    File(FilePath),
    /// A value.
    Value(Value),
}

impl BatchItem {
    /// Returns the value in the scope, without the content of a file.
    pub fn scope_value(&self) -> Value {
        match self {
            BatchItem::Value(value) => value.clone(),
            BatchItem::File(file) => json!({
                "path": file.to_string(),
                "stem": file.path.stem(),
                "number": file.path.number(),
            }),
        }
    }
}

/// Why the batches of a stage are unknown.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ExpandError {
    /// A file or expression failed.
    #[error("[each.{each}] of stage `{stage}`: {why}")]
    Each {
        /// The stage.
        stage: String,
        /// The `each`.
        each: String,
        /// What is wrong.
        why: String,
    },
    /// Two batches have the same key.
    #[error(
        "stage `{stage}` has two batches with the key `{key}`: give [each.{each}] a `key` that distinguishes them"
    )]
    EqualKeys {
        /// The stage.
        stage: String,
        /// The `each`.
        each: String,
        /// The key.
        key: String,
    },
}

/// Returns the batches of a stage, in order. `base` is the scope without the stage's own names.
///
/// # Errors
/// If a file with items cannot be read, an expression fails, or two batches have the same key.
pub fn expand(
    stage: &Stage,
    base: &Map<String, Value>,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Result<Vec<Batch>, ExpandError> {
    let mut batches = vec![Batch {
        key: String::new(),
        position: 0,
        items: Vec::new(),
    }];
    for each in &stage.each {
        let failed = |why| ExpandError::Each {
            stage: stage.name.clone(),
            each: each.name.clone(),
            why,
        };
        let items = items(each, base, recorded, world, written).map_err(failed)?;
        let mut keyed = BTreeSet::new();
        for (key, _) in &items {
            if !keyed.insert(key.clone()) {
                return Err(ExpandError::EqualKeys {
                    stage: stage.name.clone(),
                    each: each.name.clone(),
                    key: key.clone(),
                });
            }
        }
        batches = batches
            .iter()
            .flat_map(|batch| {
                items.iter().map(|(key, item)| {
                    let key = if batch.items.is_empty() {
                        key.clone()
                    } else {
                        format!("{},{key}", batch.key)
                    };
                    let mut all = batch.items.clone();
                    all.push((each.name.clone(), item.clone()));
                    Batch {
                        key,
                        position: 0,
                        items: all,
                    }
                })
            })
            .collect();
    }
    for (position, batch) in batches.iter_mut().enumerate() {
        batch.position = position as u64 + 1;
    }
    Ok(batches)
}

fn items(
    each: &Each,
    base: &Map<String, Value>,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, BatchItem)>, String> {
    let scope = Value::Object(base.clone());
    let found = match &each.source {
        EachSource::Path(path) => {
            let pattern = paths::render(path, &scope)?;
            let files = glob(&pattern, recorded, world, written)?;
            files.into_iter().map(BatchItem::File).collect()
        }
        EachSource::From {
            file,
            select,
            columns,
        } => {
            let file = paths::render(file, &scope)?;
            let reading = match columns {
                Some(_) => Reading {
                    format: Format::Csv,
                    columns: columns.clone(),
                },
                None => Format::of_path(file.path.as_str()).into(),
            };
            let content = world.content(&file, &reading)?;
            let values = select
                .all(content, base)
                .map_err(|error| error.to_string())?;
            values.into_iter().map(BatchItem::Value).collect()
        }
        EachSource::Values(values) => values.iter().cloned().map(BatchItem::Value).collect(),
        EachSource::Count(count) => (1..=count.number(base)?)
            .map(|n| BatchItem::Value(json!(n)))
            .collect::<Vec<_>>(),
    };
    found
        .into_iter()
        .map(|item| {
            let key = match (&each.key, &item) {
                (Some(program), item) => {
                    let value = program
                        .one(item.scope_value(), base)
                        .map_err(|error| error.to_string())?;
                    text_key(&value).ok_or_else(|| {
                        format!("`key` returned {value}, expected text or a number")
                    })?
                }
                (None, BatchItem::File(file)) => file.path.stem().to_owned(),
                (None, BatchItem::Value(value)) => text_key(value)
                    .ok_or_else(|| format!("an item is {}: declare its `key`", kind_of(value)))?,
            };
            Ok((key, item))
        })
        .collect()
}

/// Returns the files that a pattern stands for: what stages write is taken from the records, everything else from the disk.
///
/// # Errors
/// If a folder cannot be read, or a pattern over files that people put there matches nothing.
pub(crate) fn glob(
    pattern: &FilePath,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Result<Vec<FilePath>, String> {
    let text = pattern.path.as_str();
    let is_written = pattern.root == crate::base::path::Root::Workspace && written(text);
    let mut files: Vec<FilePath> = if is_written {
        recorded.matching(text)?
    } else {
        let found = world.matches(pattern.root, text)?;
        if found.is_empty() {
            return Err(format!("no file matches `{pattern}`: put one there"));
        }
        found
            .into_iter()
            .map(|path| FilePath {
                root: pattern.root,
                path,
            })
            .collect()
    };
    files.sort_by(|a, b| natural(a.path.as_str(), b.path.as_str()));
    Ok(files)
}

fn text_key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
