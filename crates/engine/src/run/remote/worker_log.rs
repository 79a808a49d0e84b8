//! The log of a process of a job: when it started, which batches it began, and the record of each finished one.

use crate::run::batch::attempt::NO_SPACE;
use crate::run::batch::stage_context::Produced;
use jiff::Timestamp;
use milepost_core::base::path::RelPath;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::reason::Reason;
use milepost_core::plan::decide::Decision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WorkerEvent {
    Started {
        /// The name of its node.
        node: String,
        /// When, by the clock of the node.
        at: Timestamp,
    },
    /// A batch begins.
    Begun {
        /// The key of the batch.
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
    /// The key of the batch.
    pub(crate) batch: String,
    /// How long it took, in milliseconds.
    pub(crate) took_ms: u64,
    /// The folder of its files, in the workspace.
    pub(crate) folder: RelPath,
    /// The resource that the node lacked, if that is why the batch failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lacked: Option<ScarceResource>,
    /// The steps, if the journal records those of the stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<StepNote>,
    /// The path of the log of its programs in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
    /// The outputs, or the outcome of the failure.
    pub(crate) result: Result<Produced, Outcome>,
}

/// A step, by its position in the stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepNote {
    Began(usize),
    /// It ended, with the result of its `summary`.
    Ended(usize, Option<Value>),
}

/// A resource that a node lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScarceResource {
    /// The kernel ended a program, because the memory of the job did not suffice.
    Memory,
    /// A disk of the node was full.
    Space,
}

impl BatchResult {
    /// Returns how it failed, also if a placeholder replaces what it would have made.
    pub(crate) fn failure(&self) -> Option<&Outcome> {
        match &self.result {
            Ok(made) => made.placeholder.as_ref(),
            Err(outcome) => Some(outcome),
        }
    }

    /// Returns true if a disk was full: an earlier run may have stopped for the same reason before it recorded that.
    pub(crate) fn met_full_disk(&self) -> bool {
        let failure = self.failure();
        failure.is_some_and(|outcome| outcome.message.contains(NO_SPACE))
    }

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
