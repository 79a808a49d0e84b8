//! The reports of a run and its stages.

use crate::run::record::quarantined::KeptFile;
use milepost_core::model::call::Spent;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Stage;
use milepost_core::model::stage_word::StageWord;
use milepost_core::plan::decide::Modification;
use milepost_core::plan::schedule::Blocker;
pub use milepost_core::plan::schedule::{AwaitedApproval, AwaitedMoney, Awaits, StageStatus};
use serde::{Deserialize, Serialize};

/// The report of a stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// The name of the stage.
    pub stage: String,
    /// The number of the stage.
    pub number: u32,
    /// The status of the stage at its end.
    pub status: StageStatus,
    /// True if the run counts as failed: a batch failed here or in the stage that blocks this one, and its stage declares
    /// neither `on_failure = "continue"` nor a placeholder, even if `--keep-going` makes the stage partial.
    #[serde(skip)]
    pub failure: bool,
    /// The number of batches.
    pub batches: u64,
    /// Batches that ran.
    pub ran: u64,
    /// Batches that were up to date.
    pub reused: u64,
    /// Batches whose outputs were restored from quarantine, without a run.
    #[serde(default)]
    pub restored: u64,
    /// Batches that were revalidated without a run.
    pub judged: u64,
    /// Failed batches with their outcomes.
    pub failed: Vec<(String, Outcome)>,
    /// The facts of failed batches, in short, for `watch`.
    #[serde(skip)]
    pub tried: Vec<(String, String)>,
    /// Batches that were not started.
    pub left: u64,
    /// The cost of its calls.
    #[serde(default)]
    pub spent: Spent,
    /// Why batches wait for budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Why batches wait for an agent that cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// The approval that batches wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<AwaitedApproval>,
    /// Batches that wait for external agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<Awaits>,
    /// Batches that no longer exist, whose outputs went to quarantine.
    pub retired: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Why it could not start.
    pub why: Option<String>,
    /// The earlier stage that blocks it.
    pub blocked_by: Option<Blocker>,
    /// True if only its missing checkpoint was written.
    pub checkpoint_rewritten: bool,
    /// Outputs that were modified by hand.
    #[serde(skip)]
    pub altered: Vec<(String, Modification)>,
    /// The value of the stage's `verdict`.
    pub verdict: Option<bool>,
    /// The number of output elements.
    pub elements: Option<u64>,
    /// The declared outputs under `outputs/`.
    pub outputs: Vec<String>,
}

/// The reports of a run and its stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The id of the run.
    pub run_id: String,
    /// The folder of the workspace.
    pub workspace: String,
    /// Stages that are no longer declared, whose outputs went to quarantine.
    pub forgotten: Vec<String>,
    /// Files that were moved to quarantine: outputs that are no longer produced, and files that a person wrote in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<KeptFile>,
    /// The reports of the stages.
    pub stages: Vec<StageReport>,
    /// Notes about stored values and agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stored: Vec<StoredNote>,
    /// True if the user stopped the run.
    pub interrupted: bool,
    /// Provider batches in flight.
    #[serde(default, skip_serializing_if = "is_none")]
    pub under_way: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// Returns the worst status of the stages.
pub(crate) fn worst(reports: &[StageReport]) -> Option<StageStatus> {
    let order = |status: StageStatus| match status {
        StageStatus::Complete => 0,
        StageStatus::Partial => 1,
        StageStatus::Held | StageStatus::Blocked => 2,
        StageStatus::Failed => 3,
        StageStatus::Modified => 4,
    };
    reports
        .iter()
        .map(StageReport::result)
        .max_by_key(|&status| order(status))
}

/// Returns the state of a run that left batches: waiting if one of its stages waits.
pub(crate) fn unfinished(reports: &[StageReport]) -> StageWord {
    let waits = |report: &StageReport| report.word() == StageWord::Waiting;
    if reports.iter().any(waits) {
        StageWord::Waiting
    } else {
        StageWord::OutOfDate
    }
}

impl Report {
    /// Returns the state of a run that left batches: waiting if one of its stages waits.
    pub fn unfinished(&self) -> StageWord {
        unfinished(&self.stages)
    }
}

impl StageReport {
    /// Returns the state at the end of the run.
    pub fn word(&self) -> StageWord {
        let waits = self.held.is_some()
            || self.unreachable.is_some()
            || self.approval.is_some()
            || self.awaits.is_some();
        match self.status {
            StageStatus::Complete => StageWord::UpToDate,
            StageStatus::Partial => StageWord::Partial,
            StageStatus::Failed => StageWord::Failed,
            StageStatus::Modified => StageWord::Modified,
            StageStatus::Held if waits => StageWord::Waiting,
            StageStatus::Held | StageStatus::Blocked => StageWord::OutOfDate,
        }
    }

    /// Returns why the stage could not begin, or why batches wait for budget or for an agent that cannot be reached.
    pub(crate) fn reason(&self) -> Option<&String> {
        let waits = self.held.as_ref().or(self.unreachable.as_ref());
        self.why.as_ref().or(waits)
    }

    /// Creates the report of a stage in which nothing ran.
    pub(crate) fn of(stage: &Stage, status: StageStatus) -> Self {
        Self {
            stage: stage.name.clone(),
            number: stage.number,
            status,
            failure: status == StageStatus::Failed,
            ..Self::default()
        }
    }

    /// Returns the status, or `Failed` if the stage makes the run fail.
    pub(crate) fn result(&self) -> StageStatus {
        if self.failure {
            StageStatus::Failed
        } else {
            self.status
        }
    }

    /// Returns the report of a second run with nothing to do.
    #[must_use]
    pub(crate) fn again(&self) -> Self {
        Self {
            ran: 0,
            reused: self.batches,
            restored: 0,
            judged: 0,
            retired: 0,
            seconds: 0.0,
            spent: Spent::default(),
            checkpoint_rewritten: false,
            ..self.clone()
        }
    }
}
