//! Notices of a run while it continues, for the observer that shows them.

use crate::run::expected::ExpectedStage;
pub use crate::steps::calls::ProviderBatchUpdate;
use milepost_core::model::call::{Estimated, Spent};
use milepost_core::model::choice::StoredNote;
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::Outcome;
use milepost_core::plan::scan::Collisions;
use std::path::PathBuf;
use std::time::Duration;

/// Something that just happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// The declarations contain likely mistakes.
    Warned {
        /// One line for each.
        warnings: Vec<String>,
    },
    /// Other users may read folders of prompts and answers.
    OpenFolders {
        /// The folders.
        folders: Vec<PathBuf>,
    },
    /// Values or agents that the workspace keeps need attention.
    Stored {
        /// The notes.
        notes: Vec<StoredNote>,
    },
    /// The run waits for another run in the workspace to end.
    WaitingForRun {
        /// The command of the other run.
        command: String,
        /// The process id of the other run.
        pid: u32,
    },
    /// The run repaired what an interrupted run left.
    Recovered {
        /// The repairs, in order.
        repairs: Vec<Repair>,
    },
    /// Some file systems take names of files of a stage for one.
    Collisions {
        /// The stage.
        stage: String,
        /// The names.
        collisions: Collisions,
    },
    /// The run begins, after repairs.
    RunStarted {
        /// The stages of the run, in order.
        stages: Vec<ExpectedStage>,
    },
    /// A stage starts.
    StageStarted {
        /// The declared name.
        stage: String,
        /// The description of the stage.
        description: Option<String>,
        /// The number of batches.
        batches: u64,
        /// Batches that will run.
        will: u64,
        /// Batches that are up to date.
        up_to_date: u64,
    },
    /// A service starts.
    ServiceStarted {
        /// The declared name.
        service: String,
        /// Program and arguments, without keys.
        program: Vec<String>,
    },
    /// A service that was started does not answer.
    ServiceFailed {
        /// The declared name.
        service: String,
        /// The reason.
        why: String,
        /// The last lines that it printed.
        printed: Vec<String>,
    },
    /// A batch starts.
    BatchStarted {
        /// The stage.
        stage: String,
        /// The batch; empty for the only one.
        batch: String,
    },
    /// A program was started for a batch. Only observers that want output receive it.
    CommandStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// Program and arguments, without keys.
        program: Vec<String>,
    },
    /// A program of a batch printed lines. Only observers that want output receive it.
    Printed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The lines, without keys.
        text: String,
    },
    /// A batch called an agent.
    Called {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The cost of the call.
        spent: Spent,
    },
    /// A call is not charged what its agent reports, or more than was reserved. Shown once for each agent and reason.
    UnexpectedUsage {
        /// The agent.
        agent: String,
        /// Why the call is charged the reserved amount; `None` if it is charged more.
        estimated: Option<Estimated>,
        /// The reserved amount.
        reserved: NanoUsd,
        /// The charged amount.
        charged: NanoUsd,
    },
    /// Calls of a stage are slow and run one batch at a time, although more could run.
    OneAtATime {
        /// The stage.
        stage: String,
        /// Batches that wait.
        waiting: u64,
        /// The mean duration of a call.
        mean: Duration,
    },
    /// A provider batch changed its state.
    ProviderBatch {
        /// The stage that waits for it.
        stage: String,
        /// The change.
        update: ProviderBatchUpdate,
    },
    /// Batches were submitted to a scheduler.
    JobsSubmitted {
        /// The stage.
        stage: String,
        /// The scheduler.
        executor: ExecutorName,
        /// The scheduler's id of the array of jobs.
        id: String,
        /// The number of jobs.
        jobs: u64,
        /// The number of batches.
        batches: u64,
    },
    /// A stage waits for something outside the run.
    Waiting {
        /// The stage.
        stage: String,
        /// The reason.
        why: String,
    },
    /// An attempt failed and is retried.
    TryingAgain {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The outcome.
        outcome: Outcome,
        /// The wait before the next attempt.
        wait: Duration,
    },
    /// A batch is done.
    BatchDone {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// How long it took.
        took: Duration,
        /// Warnings of its steps.
        warnings: Vec<String>,
    },
    /// A batch failed.
    BatchFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The outcome.
        outcome: Outcome,
        /// The quarantine folder with its leftover files, in the workspace.
        quarantine: Option<String>,
    },
    /// Files were moved to quarantine.
    Kept {
        /// The files.
        files: Vec<crate::run::record::quarantined::KeptFile>,
    },
    /// A stage ended.
    StageEnded(Box<crate::run::report::StageReport>),
}

/// A repair of what an interrupted run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The end of a torn journal was cut.
    JournalCut {
        /// Bytes that were removed.
        bytes: u64,
    },
    /// The manifest of a stage was gone, and the journal has its content.
    ManifestRebuilt {
        /// The stage.
        stage: String,
    },
    /// Programs of the interrupted run were ended.
    ProcessesEnded {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// Files of a finished batch were lost; the batch runs again.
    BatchLost {
        /// `stage/batch`.
        batch: String,
    },
    /// Outputs that nothing makes any more were moved to quarantine.
    Quarantined {
        /// How many.
        files: u64,
    },
    /// Scratch files could not be removed.
    StuckScratch {
        /// Where they are now, in the workspace.
        folder: String,
        /// Why.
        problem: String,
    },
    /// Files of finished batches were moved into place.
    Published {
        /// How many.
        files: u64,
    },
}

impl Repair {
    /// Returns the file that could not be removed, with the reason.
    pub(crate) fn left(&self) -> Option<String> {
        match self {
            Self::StuckScratch { folder, problem } => Some(format!("{folder}: {problem}")),
            _ => None,
        }
    }
}

/// Receives the notices of a run.
pub trait Observer {
    /// A notice of a run.
    fn notice(&mut self, notice: Notice);

    /// Returns true if the observer shows the programs of batches and what they print.
    fn wants_output(&self) -> bool {
        false
    }

    /// The run is stopped while jobs of a scheduler wait or run. Returns true to leave them there for a later run, false to cancel
    /// them.
    fn leaves_jobs(&mut self, _executor: ExecutorName, _jobs: u64) -> bool {
        true
    }
}

/// An observer that ignores all notices.
pub struct Silent;

impl Observer for Silent {
    fn notice(&mut self, _: Notice) {}
}
