//! The state of a stage in the one word that every screen shows.

use serde::{Deserialize, Serialize};

/// The state of a stage, as screens show it.
///
/// JSON also has the more detailed words of earlier versions, in `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StageWord {
    /// Inputs and outputs match the records: a run does nothing.
    UpToDate,
    /// A run builds batches, or an earlier stage blocks the stage.
    OutOfDate,
    /// A run builds batches now.
    Running,
    /// Batches wait for an agent, for budget or for approval.
    Waiting,
    /// A batch failed, and the stage stopped.
    Failed,
    /// Some batches failed, and the stage continues without them.
    Partial,
    /// Outputs were modified by hand.
    Modified,
}

impl StageWord {
    /// Returns the word that screens show.
    pub fn text(self) -> &'static str {
        match self {
            Self::UpToDate => "up to date",
            Self::OutOfDate => "out of date",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Partial => "partial",
            Self::Modified => "modified",
        }
    }
}
