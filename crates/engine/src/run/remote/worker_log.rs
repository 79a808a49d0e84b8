//! The log of a process of a job: when it started, which batches it began, and the record of each finished one.

use crate::run::batch::stage_context::Produced;
use jiff::Timestamp;
use milepost_core::base::path::RelPath;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::reason::Reason;
use milepost_core::model::record::{AnswersOf, FailedKeys, Made, Opinion};
use milepost_core::plan::decide::Decision;
use serde::{Deserialize, Serialize};

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WorkerEvent {
    /// The process started.
    Started {
        /// The name of its node.
        node: String,
        /// When, by the clock of the node.
        at: Timestamp,
    },
    /// A batch begins.
    Begun {
        /// Its key.
        batch: String,
    },
    /// A batch is finished: its files are whole in its folder, and flushed.
    Done(Box<BatchResult>),
    /// All batches of the job are finished, or the run asked to stop.
    Ended,
}

/// The record of a finished batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BatchResult {
    /// Its key.
    pub(crate) batch: String,
    /// How long it took, in milliseconds.
    pub(crate) took_ms: u64,
    /// Its folder in the workspace.
    pub(crate) folder: RelPath,
    /// True if the kernel ended a program of it, because the memory of the job did not suffice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lacked_memory: bool,
    /// The path of the log of its programs in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
    /// What it made, or how it failed.
    pub(crate) result: Result<MadeBatch, Outcome>,
}

/// What a batch made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeBatch {
    files: Vec<(Made, RelPath)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    elements: Option<u64>,
    #[serde(default)]
    opinion: Opinion,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placeholder: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedKeys>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answers: Vec<AnswersOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stale: Option<String>,
}

impl BatchResult {
    /// Returns true if it is the failure by which the decision says that the batch runs again: an earlier run recorded it.
    pub(crate) fn is_known_failure(&self, decision: Option<&Decision>, job: &JobOfBatch) -> bool {
        let Some(Decision::Will(reasons)) = decision else {
            return false;
        };
        let job = job.to_string();
        reasons.iter().any(|reason| match (reason, &self.result) {
            (Reason::Failed { outcome }, Err(_)) => outcome.details.first() == Some(&job),
            (Reason::Failed { outcome }, Ok(made)) => made.placeholder.as_ref() == Some(outcome),
            _ => false,
        })
    }
}

impl MadeBatch {
    /// Returns its files with their paths in the workspace until they are published.
    pub(crate) fn files(&self) -> impl Iterator<Item = &(Made, RelPath)> {
        self.files.iter()
    }
}

impl From<Produced> for MadeBatch {
    fn from(produced: Produced) -> Self {
        let Produced {
            files,
            elements,
            opinion,
            warnings,
            placeholder,
            failed,
            answers,
            stale,
            job: _,
        } = produced;
        Self {
            files,
            elements,
            opinion,
            warnings,
            placeholder,
            failed,
            answers,
            stale,
        }
    }
}

impl From<MadeBatch> for Produced {
    fn from(made: MadeBatch) -> Self {
        let MadeBatch {
            files,
            elements,
            opinion,
            warnings,
            placeholder,
            failed,
            answers,
            stale,
        } = made;
        Self {
            files,
            elements,
            opinion,
            warnings,
            placeholder,
            failed,
            answers,
            stale,
            job: None,
        }
    }
}
