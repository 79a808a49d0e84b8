//! What a run tells while it goes on, for whoever shows it.

pub use crate::steps::calls::ProviderBatchUpdate;
use milepost_core::model::call::Spent;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::outcome::Outcome;
use std::time::Duration;

/// Something that just happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// The declarations hold what is allowed and perhaps not meant.
    Warned {
        /// One line for each.
        warnings: Vec<String>,
    },
    /// Values or agents that the workspace keeps need attention.
    Stored {
        /// What to know of them.
        notes: Vec<StoredNote>,
    },
    /// The run repaired what an interrupted run left.
    Recovered {
        /// The repairs, in order.
        repairs: Vec<Repair>,
    },
    /// A stage begins.
    StageStarted {
        /// Its name.
        stage: String,
        /// What it is for.
        description: Option<String>,
        /// Batches that there are.
        batches: u64,
        /// Batches that will run.
        will: u64,
    },
    /// A service was started, and is waited for.
    ServiceStarted {
        /// Its name.
        service: String,
    },
    /// A service that was started does not answer.
    ServiceFailed {
        /// Its name.
        service: String,
        /// Why.
        why: String,
        /// The last lines that it printed.
        printed: Vec<String>,
    },
    /// A batch begins.
    BatchStarted {
        /// The stage.
        stage: String,
        /// The batch; empty for the only one.
        batch: String,
    },
    /// A batch called an agent.
    Called {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// What the call cost.
        spent: Spent,
    },
    /// A provider batch changed its state.
    ProviderBatch {
        /// The stage that waits for it.
        stage: String,
        /// The change.
        update: ProviderBatchUpdate,
    },
    /// A try failed, and another follows.
    TryingAgain {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The try that failed, from 1 on.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// How long until the next.
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
    /// A batch failed for good.
    BatchFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// How.
        outcome: Outcome,
        /// Where what it left is kept, in the workspace.
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
    /// Files of finished batches were moved into place.
    Published {
        /// How many.
        files: u64,
    },
}

/// Shows what happens.
pub trait Observer {
    /// Something just happened.
    fn notice(&mut self, notice: Notice);
}

/// Shows nothing.
pub struct Silent;

impl Observer for Silent {
    fn notice(&mut self, _: Notice) {}
}
