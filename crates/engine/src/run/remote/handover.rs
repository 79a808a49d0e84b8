//! The files of a submission for its jobs: the context of the stage, and the batches of each job.

use crate::run::batch::stage_context::StageContext;
use crate::run::error::RunError;
use crate::run::remote::pack::LimitFailures;
use jiff::Timestamp;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::record::Override;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::expand::{Batch, BatchItem};
use milepost_core::plan::inputs::Resolved;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_store::store::jobs::Submission;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The description of a submission, `job.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SubmissionRecord {
    /// The version of Milepost: the program on the nodes must be the same.
    pub(crate) version: String,
    pub(crate) executor: ExecutorName,
    pub(crate) stage: String,
    /// The run that submitted it.
    pub(crate) run: String,
    /// When, by the clock of the runner.
    pub(crate) submitted: Timestamp,
    /// The number of jobs.
    pub(crate) jobs: u64,
    /// The failures at limits of all its batches, which decided what the jobs got.
    pub(crate) failures: LimitFailures,
    /// The id of the facts that its batches share. If the declarations change, it differs.
    pub(crate) shared: String,
    /// The same without the programs, which may differ on a node.
    pub(crate) declared: String,
    /// The values of parameters, as the runner computed them.
    pub(crate) params: Map<String, Value>,
    pub(crate) workspace: Map<String, Value>,
    /// Replaced agents.
    pub(crate) agents: BTreeMap<String, String>,
    /// The accepted modifications that the stage mentions.
    pub(crate) overrides: Vec<Override>,
    /// The time of `SOURCE_DATE_EPOCH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<Timestamp>,
}

/// A batch for a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HandedBatch {
    pub(crate) key: String,
    position: u64,
    items: Vec<(String, HandedItem)>,
    inputs: Vec<HandedInput>,
    pub(crate) facts: Facts,
    targets: BTreeMap<String, RelPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overrides: Option<Value>,
    /// The files that it made last time, by output.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) previous: BTreeMap<String, RelPath>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HandedItem {
    File(String),
    Value(Value),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct HandedInput {
    name: String,
    files: Vec<String>,
    many: bool,
}

impl SubmissionRecord {
    /// Returns the description of a submission of this stage's batches.
    pub(crate) fn new(
        stage_ctx: &StageContext<'_>,
        executor: ExecutorName,
        scan: &StageScan,
        (jobs, failures): (u64, LimitFailures),
    ) -> Self {
        let settings = stage_ctx.ctx.settings;
        Self {
            version: settings.version.clone(),
            executor,
            stage: stage_ctx.stage.name.clone(),
            run: stage_ctx.run_id.to_owned(),
            submitted: stage_ctx.ctx.clock.now(),
            jobs,
            failures,
            shared: scan.shared_id.clone(),
            declared: scan.shared.id_without(FactKind::Program),
            params: settings.params.clone(),
            workspace: settings.workspace.clone(),
            agents: settings.agents.clone(),
            overrides: settings.overrides.clone(),
            epoch: stage_ctx.ctx.epoch,
        }
    }

    /// Reads the description of a submission; `None` if it was not written whole, or by a version that this one cannot read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(submission: &Submission) -> Result<Option<Self>, RunError> {
        json(submission, &["job.json"])
    }
}

impl HandedBatch {
    pub(crate) fn new(found: &BatchScan, previous: BTreeMap<String, RelPath>) -> Self {
        let item = |item: &BatchItem| match item {
            BatchItem::File(file) => HandedItem::File(file.to_string()),
            BatchItem::Value(value) => HandedItem::Value(value.clone()),
        };
        let items = found.batch.items.iter();
        let inputs = found.inputs.iter().map(|input| HandedInput {
            name: input.name.clone(),
            files: input.files.iter().map(ToString::to_string).collect(),
            many: input.many,
        });
        Self {
            key: found.batch.key.clone(),
            position: found.batch.position,
            items: items.map(|(name, one)| (name.clone(), item(one))).collect(),
            inputs: inputs.collect(),
            facts: (*found.own).clone(),
            targets: found.targets.clone(),
            overrides: found.overrides.as_deref().cloned(),
            previous,
        }
    }

    /// Returns the batch as the scan of the runner found it.
    ///
    /// # Errors
    /// The text that is not a path.
    pub(crate) fn scan(&self) -> Result<BatchScan, UnreadablePath> {
        let file = |text: &str| -> Result<FilePath, UnreadablePath> {
            text.parse().map_err(|_| UnreadablePath(text.to_owned()))
        };
        let mut items = Vec::with_capacity(self.items.len());
        for (name, item) in &self.items {
            let item = match item {
                HandedItem::File(text) => BatchItem::File(file(text)?),
                HandedItem::Value(value) => BatchItem::Value(value.clone()),
            };
            items.push((name.clone(), item));
        }
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let files = input.files.iter().map(|text| file(text));
            inputs.push(Resolved {
                name: input.name.clone(),
                files: files.collect::<Result<_, _>>()?,
                many: input.many,
            });
        }
        Ok(BatchScan {
            batch: Batch {
                key: self.key.clone(),
                position: self.position,
                items,
                refused: None,
            },
            inputs,
            own: Arc::new(self.facts.clone()),
            targets: self.targets.clone(),
            overrides: self.overrides.clone().map(Arc::new),
            decision: Ok(Decision::Will(Vec::new())),
            asked_since: None,
        })
    }

    /// Reads the batches of a job; `None` if they were not written whole.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(submission: &Submission, job: u64) -> Result<Option<Vec<Self>>, RunError> {
        json(submission, &["tasks", &format!("{job}.json")])
    }
}

/// A text in the batches of a job that is not a path.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a valid path of project or workspace")]
pub(crate) struct UnreadablePath(String);

fn json<T: DeserializeOwned>(
    submission: &Submission,
    parts: &[&str],
) -> Result<Option<T>, RunError> {
    let bytes = submission.read(parts).map_err(|error| {
        RunError::World(format!(
            "cannot read {}: {error}",
            submission.at(parts).display()
        ))
    })?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Returns a value as JSON.
///
/// # Errors
/// When it has no JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, RunError> {
    serde_json::to_vec(value).map_err(|error| RunError::World(error.to_string()))
}
