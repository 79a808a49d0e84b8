//! What is known of a workspace: the sum of its manifests and its journal.

use super::checkpoint::Status;
use super::event::{Child, Publish};
use super::forced::Forced;
use super::record::BatchRecord;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::fingerprint::Facts;
use crate::model::outcome::Outcome;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything known of a workspace. Only `plan::machine::apply` changes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// Stages by name.
    pub stages: BTreeMap<String, StageState>,
    /// Published since the last barrier: stage, batch and files.
    pub unsettled: Vec<Unsettled>,
    /// Files on their way to quarantine since the last barrier: from where to where, both in the workspace.
    pub retiring: BTreeMap<RelPath, RelPath>,
    /// Programs that the last run started and that may live on.
    pub children: Vec<Child>,
    /// The last run, while it has not said that it ended.
    pub open_run: Option<String>,
    /// Digests of the checkpoints as they were written, by stage.
    pub checkpoints: BTreeMap<String, Digest>,
    /// What is left of runs with `--force`, in their order. A batch is in one of them at most.
    pub forced: Vec<Forced>,
}

impl State {
    /// Returns the run with `--force` of which this batch is left.
    pub fn forced(&self, stage: &str, batch: &str) -> Option<&Forced> {
        self.forced.iter().find(|forced| forced.has(stage, batch))
    }

    /// Returns the runs whose answers of agents alone count for this batch. `None`: every answer that is kept counts.
    pub fn asked_since(&self, stage: &str, batch: &str) -> Option<&[String]> {
        let is_new = || {
            let known = self.stages.get(stage);
            known
                .and_then(|known| known.batches.get(batch))
                .is_none_or(|known| known.record.is_none())
        };
        let of_batch = self.forced(stage, batch);
        let of_stage = || {
            let mut all = self.forced.iter().rev();
            all.find(|forced| forced.open.contains(stage))
                .filter(|_| is_new())
        };
        let forced = of_batch.or_else(of_stage)?;
        (!forced.runs.is_empty()).then_some(forced.runs.as_slice())
    }
}

/// Files of a batch that are perhaps not in place yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsettled {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// The files.
    pub files: Vec<Publish>,
}

/// What is known of a stage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageState {
    /// Its number when it last ran.
    pub number: u32,
    /// Batches by key.
    pub batches: BTreeMap<String, BatchState>,
    /// Sets of facts that batches share, by id.
    pub facts: BTreeMap<String, Arc<Facts>>,
    /// What its checkpoint says, when there is one.
    pub status: Option<Status>,
}

/// What is known of a batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchState {
    /// Where it is.
    pub phase: Phase,
    /// What was made, when it was.
    pub record: Option<BatchRecord>,
    /// Files at its paths that Milepost made and no record vouches for.
    pub remains: BTreeMap<RelPath, Digest>,
}

/// Where a batch is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// Not made, or not known to be.
    #[default]
    Waiting,
    /// Being tried.
    Running {
        /// From 1 on.
        attempt: u32,
    },
    /// Waiting for another try.
    Backoff {
        /// The try that failed.
        attempt: u32,
    },
    /// Made.
    Complete,
    /// Failed for good in the last run.
    Failed {
        /// How.
        outcome: Box<Outcome>,
    },
}

impl Phase {
    /// The word for people and JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running { .. } => "running",
            Self::Backoff { .. } => "backoff",
            Self::Complete => "complete",
            Self::Failed { .. } => "failed",
        }
    }
}

impl BatchState {
    /// The files that it made: those on record, and those that remain.
    pub fn files(&self) -> impl Iterator<Item = &RelPath> {
        let made = self.record.iter().flat_map(|record| &record.outputs);
        made.map(|made| &made.path).chain(self.remains.keys())
    }
}

impl StageState {
    /// The files that its batches made.
    pub(crate) fn files(&self) -> impl Iterator<Item = &RelPath> {
        self.batches.values().flat_map(BatchState::files)
    }

    /// The facts that a record shares with others of its stage.
    pub fn shared(&self, record: &BatchRecord) -> Arc<Facts> {
        self.facts.get(&record.shared).cloned().unwrap_or_default()
    }

    /// All recorded files of the stage, with the batch that made them.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &super::record::Made)> {
        self.batches.iter().flat_map(|(key, batch)| {
            let made = batch.record.iter().flat_map(|record| record.outputs.iter());
            made.map(move |made| (key.as_str(), made))
        })
    }
}
