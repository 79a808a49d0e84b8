//! The batches of a stage: one for each item, or one for each combination of items.

use crate::base::natural::natural;
use crate::base::path::{FilePath, RelPath, stem};
use crate::expr::jq::Evaluator;
use crate::expr::json::{key_text, kind};
use crate::expr::scope::{Format, Reading};
use crate::model::stage::{Each, EachSource, Stage};
use crate::plan::batches::paths;
use crate::plan::batches::recorded::Recorded;
use crate::plan::batches::world::{RefusedFile, World};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// One batch of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The key; empty for the only batch of a stage without `each`.
    pub key: String,
    /// The position in the stage, from 1.
    pub position: u64,
    /// The items, each with the name of its `each`, in the order of the declaration.
    pub items: Vec<(String, BatchItem)>,
    /// Why it cannot run: the files of its items that cannot be used.
    pub refused: Option<String>,
}

/// Returns the name of a batch for people: `classify/batch_1`, or `parse` for the only batch of a stage.
pub fn batch_name(stage: &str, batch: &str) -> String {
    if batch.is_empty() {
        stage.to_owned()
    } else {
        format!("{stage}/{batch}")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum BatchItem {
    File(FilePath),
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
        stage: String,
        /// The `each`.
        each: String,
        why: String,
    },
    /// Two batches of crossed items have the same key.
    #[error(
        "stage `{stage}` has two batches with the key `{key}`: commas in the keys of {each} make it ambiguous; declare a `key` without commas"
    )]
    AmbiguousKeys {
        stage: String,
        /// The names of the tables.
        each: String,
        key: String,
    },
    /// Two batches would write the same file.
    #[error(
        "the batches `{}` and `{}` of stage `{stage}` would both write `{path}`: put what distinguishes them into the path, such as {names}", .batches[0], .batches[1]
    )]
    SharedOutput {
        stage: String,
        path: String,
        /// The keys.
        batches: [String; 2],
        /// Expressions that distinguish the batches.
        names: String,
    },
    /// A batch would write a file where another needs a folder.
    #[error(
        "batch `{}` of stage `{stage}` would write the file `{path}`, and batch `{}` would write `{inside}` in it: choose another path for one of them", .batches[0], .batches[1]
    )]
    NestedOutput {
        stage: String,
        path: String,
        /// The keys.
        batches: [String; 2],
        /// The file in it.
        inside: String,
    },
    /// Two batches have the same key.
    #[error(
        "stage `{stage}` has two batches with the key `{key}`: give [each.{each}] a `key` that distinguishes them"
    )]
    EqualKeys {
        stage: String,
        /// The `each`.
        each: String,
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
        refused: None,
    }];
    for each in &stage.each {
        let failed = |why| ExpandError::Each {
            stage: stage.name.clone(),
            each: each.name.clone(),
            why,
        };
        let items = items(stage, each, base, recorded, world, written).map_err(failed)?;
        if let Some(key) = repeated(items.iter().map(|item| item.key.as_str())) {
            return Err(ExpandError::EqualKeys {
                stage: stage.name.clone(),
                each: each.name.clone(),
                key: key.to_owned(),
            });
        }
        batches = batches
            .iter()
            .flat_map(|batch| {
                items.iter().map(|EachItem { key, item, refused }| {
                    let key = if batch.items.is_empty() {
                        key.clone()
                    } else {
                        format!("{},{key}", batch.key)
                    };
                    let mut all = Vec::with_capacity(batch.items.len() + 1);
                    all.extend_from_slice(&batch.items);
                    all.push((each.name.clone(), item.clone()));
                    Batch {
                        key,
                        position: 0,
                        items: all,
                        refused: joined(batch.refused.iter().chain(refused)),
                    }
                })
            })
            .collect();
    }
    if stage.each.len() > 1
        && let Some(key) = repeated(batches.iter().map(|batch| batch.key.as_str()))
    {
        let names = stage
            .each
            .iter()
            .map(|each| format!("[each.{}]", each.name));
        return Err(ExpandError::AmbiguousKeys {
            stage: stage.name.clone(),
            each: names.collect::<Vec<_>>().join(" and "),
            key: key.to_owned(),
        });
    }
    for (position, batch) in batches.iter_mut().enumerate() {
        batch.position = position as u64 + 1;
    }
    Ok(batches)
}

/// Returns the first key that occurs again.
fn repeated<'a>(mut keys: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    keys.find(|key| !seen.insert(*key))
}

/// Returns the files that the batches of a stage are named by, in the order of the batches; `None` if its batches have other names,
/// are not known, or cannot all be used.
pub fn naming_files(
    stage: &Stage,
    base: &Map<String, Value>,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Option<Vec<FilePath>> {
    let [each] = stage.each.as_slice() else {
        return None;
    };
    let EachSource::Path(path) = &each.source else {
        return None;
    };
    let pattern = paths::read(path, &Value::Object(base.clone()))
        .ok()?
        .into_pattern();
    let found = glob(&pattern, recorded, world, written).ok()?;
    let mut keys: Vec<&str> = found.files.iter().map(|file| file.path.stem()).collect();
    keys.sort_unstable();
    let is_unique = keys.windows(2).all(|pair| pair[0] != pair[1]);
    (each.key.is_none() && found.refused.is_empty() && is_unique).then_some(found.files)
}

/// An item of an `each`.
struct EachItem {
    key: String,
    item: BatchItem,
    /// Why no batch can use it.
    refused: Option<String>,
}

/// Joins reasons; `None` if there are none.
fn joined<'a>(reasons: impl Iterator<Item = &'a String>) -> Option<String> {
    let reasons: Vec<&str> = reasons.map(String::as_str).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns the items of an `each`. Those that no batch can use come last.
fn items(
    stage: &Stage,
    each: &Each,
    base: &Map<String, Value>,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Result<Vec<EachItem>, String> {
    let scope = Value::Object(base.clone());
    let mut refused = Vec::new();
    let evaluator = world.evaluator(stage);
    let found = match &each.source {
        EachSource::Path(path) => {
            let pattern = paths::read(path, &scope)?.into_pattern();
            let found = glob(&pattern, recorded, world, written)?;
            let unusable = found.refused.into_iter();
            refused = unusable
                .map(|file| (refused_item(&pattern, &file.name), file))
                .collect();
            found.files.into_iter().map(BatchItem::File).collect()
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
                .all(content, base, &*evaluator)
                .map_err(|error| error.to_string())?;
            values.into_iter().map(BatchItem::Value).collect()
        }
        EachSource::Values(values) => values.iter().cloned().map(BatchItem::Value).collect(),
        EachSource::Count(count) => (1..=count.number(base)?)
            .map(|n| BatchItem::Value(json!(n)))
            .collect::<Vec<_>>(),
    };
    let mut items = Vec::with_capacity(found.len() + refused.len());
    for item in found {
        items.push(EachItem {
            key: item_key(each, &item, base, &*evaluator)?,
            item,
            refused: None,
        });
    }
    let known = items.iter().map(|item| item.key.clone());
    let mut keys: BTreeSet<String> = match refused.as_slice() {
        [] => BTreeSet::new(),
        _ => known.collect(),
    };
    for (item, file) in refused {
        // One file that cannot be used must not stop the batches of the others.
        let key = match &each.key {
            Some(_) => item_key(each, &item, base, &*evaluator).ok(),
            None => Some(stem(&file.name).to_owned()),
        };
        let key = key.filter(|key| keys.insert(key.clone()));
        items.push(EachItem {
            key: key.unwrap_or(file.name),
            item,
            refused: Some(file.why),
        });
    }
    Ok(items)
}

/// Returns the item of a file that cannot be used. A path that no record can hold has the fields of a file too.
fn refused_item(pattern: &FilePath, name: &str) -> BatchItem {
    match RelPath::parse(name) {
        Ok(path) => BatchItem::File(FilePath {
            root: pattern.root,
            path,
        }),
        Err(_) => BatchItem::Value(json!({ "path": name, "stem": stem(name), "number": null })),
    }
}

fn item_key(
    each: &Each,
    item: &BatchItem,
    base: &Map<String, Value>,
    evaluator: &dyn Evaluator,
) -> Result<String, String> {
    match (&each.key, item) {
        (Some(program), item) => {
            let value = program
                .one(item.scope_value(), base, evaluator)
                .map_err(|error| error.to_string())?;
            key_text(&value)
                .ok_or_else(|| format!("`key` returned {value}, expected text or a number"))
        }
        (None, BatchItem::File(file)) => Ok(file.path.stem().to_owned()),
        (None, BatchItem::Value(value)) => {
            key_text(value).ok_or_else(|| format!("an item is {}: declare its `key`", kind(value)))
        }
    }
}

/// The files that match a pattern.
#[derive(Default)]
pub(crate) struct GlobbedFiles {
    files: Vec<FilePath>,
    /// The matches that cannot be used.
    refused: Vec<RefusedFile>,
}

impl GlobbedFiles {
    /// Returns the files.
    ///
    /// # Errors
    /// If matches cannot be used: all of them.
    pub(crate) fn all(self) -> Result<Vec<FilePath>, String> {
        match joined(self.refused.iter().map(|file| &file.why)) {
            Some(reasons) => Err(reasons),
            None => Ok(self.files),
        }
    }
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
) -> Result<GlobbedFiles, String> {
    let text = pattern.path.as_str();
    let is_written = pattern.root == crate::base::path::Root::Workspace && written(text);
    let mut refused = Vec::new();
    let mut files: Vec<FilePath> = if is_written {
        recorded.matching(text)?
    } else {
        let found = world.matches(pattern.root, text)?;
        refused = found.refused;
        if found.files.is_empty() && refused.is_empty() {
            return Err(format!("no file matches `{pattern}`: add one"));
        }
        let files = found.files;
        files
            .into_iter()
            .map(|path| FilePath {
                root: pattern.root,
                path,
            })
            .collect()
    };
    files.sort_by(|a, b| natural(a.path.as_str(), b.path.as_str()));
    Ok(GlobbedFiles { files, refused })
}
