//! The result of the up-to-date check of a stage and its batches.

use crate::base::collision::Collision;
use crate::base::path::{FilePath, RelPath};
use crate::model::fingerprint::{FactKind, Facts};
use crate::model::pipeline::Pipeline;
use crate::model::stage::{OVERRIDES, RUN, Stage};
use crate::plan::batches::expand::{Batch, BatchItem};
use crate::plan::batches::inputs::{Missed, Resolved};
use crate::plan::decide::Decision;
use crate::plan::options::settings::{Settings, run_scope};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The up-to-date check of a stage.
#[derive(Debug, Default)]
pub struct StageScan {
    /// The facts that its batches share.
    pub shared: Arc<Facts>,
    /// The digest of the shared facts.
    pub shared_id: String,
    /// The batches in order, except those counted in [`Self::others`] and listed in [`Self::ahead`].
    pub batches: Vec<BatchScan>,
    /// The number of further batches, which are up to date.
    pub others: u64,
    /// Further batches, which are new and will run: so many that each is scanned when its turn comes.
    pub ahead: Vec<BatchAhead>,
    /// False while an earlier stage may still change which batches there are.
    pub certain: bool,
    /// Keys of recorded batches that the stage no longer has.
    pub gone: Vec<String>,
    /// Names of its files that some file systems take for one.
    pub collisions: Collisions,
}

/// The names of files of a stage that some file systems take for one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Collisions {
    /// Files that match the patterns of its inputs.
    pub inputs: Vec<Collision>,
    /// Files that it writes.
    pub outputs: Vec<Collision>,
}

impl Collisions {
    /// Returns true if all names are different on every file system.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }
}

impl StageScan {
    /// Returns the number of all batches.
    pub fn count(&self) -> u64 {
        (self.batches.len() + self.ahead.len()) as u64 + self.others
    }

    /// Returns the digest of all facts of a batch whose own facts were kept.
    pub fn facts(&self, batch: &BatchScan) -> String {
        format!("{}{}", self.shared_id, batch.own.id())
    }
}

/// A new batch of a stage with one `each` over files, which are named by their stems.
#[derive(Debug, Clone)]
pub struct BatchAhead {
    /// The position in the stage, from 1.
    pub position: u64,
    /// The file of its item.
    pub file: FilePath,
}

impl BatchAhead {
    /// Returns its key.
    pub fn key(&self) -> &str {
        self.file.path.stem()
    }

    /// Returns the batch.
    pub fn batch(&self, stage: &Stage) -> Batch {
        let item = || BatchItem::File(self.file.clone());
        let each = stage.each.iter();
        Batch {
            key: self.key().to_owned(),
            position: self.position,
            items: each.map(|each| (each.name.clone(), item())).collect(),
            refused: None,
        }
    }
}

/// The up-to-date check of a batch. Of a batch that is up to date only its name is kept, unless the caller asks for more.
#[derive(Debug, Clone)]
pub struct BatchScan {
    pub batch: Batch,
    /// The files of its inputs.
    pub inputs: Vec<Resolved>,
    pub own: Arc<Facts>,
    /// The path, or pattern, of each output and of the marker.
    pub targets: BTreeMap<String, RelPath>,
    /// The accepted modifications by hand that its inputs depend on, if the stage mentions them.
    pub overrides: Option<Arc<Value>>,
    /// The decision; an error if an input is missing or a precondition does not hold.
    pub decision: Result<Decision, Missed>,
    /// The runs whose answers count for it; `None` if every kept answer counts.
    pub asked_since: Option<Vec<String>>,
}

impl BatchScan {
    /// Returns a batch that is up to date, without details.
    pub fn reused(batch: Batch) -> Self {
        Self {
            batch,
            inputs: Vec::new(),
            own: Arc::default(),
            targets: BTreeMap::new(),
            overrides: None,
            decision: Ok(Decision::UpToDate),
            asked_since: None,
        }
    }

    /// Returns the names that every scope has, and the batch's items, paths and digests as plain values; `moment` appears as `run`.
    pub fn base(
        &self,
        pipeline: &Pipeline,
        settings: &Settings,
        moment: Timestamp,
    ) -> Map<String, Value> {
        let mut base = self.values(pipeline, settings, moment);
        base.insert("paths".into(), self.paths());
        base.insert("digests".into(), self.digests());
        base
    }

    /// Like [`BatchScan::base`], without paths and digests.
    pub fn values(
        &self,
        pipeline: &Pipeline,
        settings: &Settings,
        moment: Timestamp,
    ) -> Map<String, Value> {
        let mut base = settings.scope(pipeline);
        base.insert(RUN.to_owned(), run_scope(moment));
        for (name, item) in &self.batch.items {
            base.insert(name.clone(), item.scope_value());
        }
        if let Some(overrides) = &self.overrides {
            base.insert(OVERRIDES.to_owned(), (**overrides).clone());
        }
        base
    }

    /// Returns the paths of inputs and outputs. They are relative, so that nothing depends on where the workspace lies.
    pub fn paths(&self) -> Value {
        let mut paths = self.of_inputs(|file| file.to_string().into());
        for (name, path) in &self.targets {
            paths.insert(name.clone(), json!(path.as_str()));
        }
        Value::Object(paths)
    }

    /// Returns the digests of the inputs; null for a file that does not exist.
    pub fn digests(&self) -> Value {
        Value::Object(self.of_inputs(|file| {
            let known = self.own.get(FactKind::Input, &file.text());
            let known = known.filter(|value| !value.is("absent"));
            known.map_or(Value::Null, |value| json!(value))
        }))
    }

    fn of_inputs(&self, of: impl Fn(&FilePath) -> Value) -> Map<String, Value> {
        let inputs = self.inputs.iter().filter(|input| !input.name.is_empty());
        let named = inputs.map(|input| {
            let mut all = input.files.iter().map(&of);
            let value = if input.many {
                Value::Array(all.collect())
            } else {
                all.next().unwrap_or(Value::Null)
            };
            (input.name.clone(), value)
        });
        named.collect()
    }
}
