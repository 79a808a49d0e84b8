//! The outcome of a stage, known or expected, and the reasons why it waits.

use crate::model::call::SentCall;
use crate::model::checkpoint::Status;
use serde::{Deserialize, Serialize};

/// How a stage ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// Every batch is up to date. Screens show `up to date`.
    Complete,
    /// Some batches failed, and the stage continues without them.
    Partial,
    /// A batch failed, and the stage stopped.
    Failed,
    /// Some batches did not run. Screens show `waiting` if they wait for approval, an agent or budget. They show `out of date` if they were not selected, or the run was interrupted.
    #[default]
    Held,
    /// An earlier stage is not complete. Screens show `out of date`.
    Blocked,
    /// Outputs were modified by hand. Screens show `modified`.
    #[serde(rename = "altered")]
    Modified,
}

impl StageStatus {
    /// Returns the word that the journal records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Held | Self::Blocked => "held",
            Self::Modified => "altered",
        }
    }
}

/// The results of a stage after its last batch, from which its status follows.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct StageTotals {
    /// The status by the records; `None` if a batch has neither a record nor a failure.
    pub recorded: Option<Status>,
    /// True if an earlier stage that it reads from is partial.
    pub reads_partial: bool,
    /// True if an agent that it needs is unavailable.
    pub unavailable: bool,
    /// True if batches did not run.
    pub left: bool,
    /// True if batches failed.
    pub failed: bool,
    /// True if the stage continues after a failure.
    pub tolerates: bool,
}

impl StageTotals {
    /// Returns how the stage ended.
    pub fn status(self) -> StageStatus {
        match self.recorded {
            _ if self.unavailable => StageStatus::Failed,
            // A batch that was not selected is out of date, even if earlier outputs exist.
            Some(_) if self.left && !self.failed => StageStatus::Held,
            Some(Status::Complete) if self.reads_partial => StageStatus::Partial,
            Some(Status::Complete) => StageStatus::Complete,
            Some(Status::Partial) if self.tolerates => StageStatus::Partial,
            Some(Status::Partial) => StageStatus::Failed,
            None if self.failed => StageStatus::Failed,
            None => StageStatus::Held,
        }
    }
}

/// The approval that a stage waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct AwaitedApproval {
    /// The role that the stage declares.
    pub by: String,
    /// Batches that wait for it; 0 while earlier stages decide which batches there are.
    pub batches: u64,
}

/// The money that a stage waits for: the run does not pay for its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct AwaitedMoney {
    /// Why the run does not pay.
    pub why: String,
    /// Batches that wait for it; 0 while earlier stages decide which batches there are.
    pub batches: u64,
}

/// The external agents that a stage waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Awaits {
    /// The names of the agents.
    pub agents: Vec<String>,
    /// Batches that wait.
    pub batches: u64,
    /// Open questions in them, as far as that is known.
    pub questions: u64,
}

impl Awaits {
    /// No batches yet, of these agents.
    pub fn by(agents: Vec<String>) -> Self {
        Self {
            agents,
            batches: 0,
            questions: 0,
        }
    }

    /// Sums up the requests that wait; `None` if there are none.
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a SentCall>) -> Option<Self> {
        let mut awaits: Option<Self> = None;
        for sent in all {
            let sum = awaits.get_or_insert_with(|| Self::by(Vec::new()));
            if !sum.agents.contains(&sent.agent) {
                sum.agents.push(sent.agent.clone());
            }
            sum.batches += 1;
            sum.questions += sent.questions;
        }
        awaits
    }
}
