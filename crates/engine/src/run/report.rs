//! What became of a run.

use crate::run::record::quarantined::KeptFile;
use milepost_core::model::call::Spent;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::Alteration;
use milepost_core::plan::schedule::Blocker;
pub use milepost_core::plan::schedule::{Awaits, StageStatus};
use serde::{Deserialize, Serialize};

/// What became of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// How it ended.
    pub status: StageStatus,
    /// Whether a batch failed for which the stage declares neither `on_failure = "continue"` nor a placeholder, here or in the
    /// stage that blocks this one: the run has failed, also where `--keep-going` makes the stage partial.
    #[serde(skip)]
    pub failure: bool,
    /// Batches that there are.
    pub batches: u64,
    /// Batches that ran.
    pub ran: u64,
    /// Batches that were reused.
    pub reused: u64,
    /// Batches that were validated again without a run.
    pub judged: u64,
    /// Batches that failed, with how.
    pub failed: Vec<(String, Outcome)>,
    /// The facts, in short, that those that failed were tried with, of a run for one who watches.
    #[serde(skip)]
    pub tried: Vec<(String, String)>,
    /// Batches that were not tried.
    pub left: u64,
    /// What its calls of agents cost.
    #[serde(default)]
    pub spent: Spent,
    /// Why batches were held: they would cost more than may be spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Batches that someone outside has to answer for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<Awaits>,
    /// Batches that there are no more, whose outputs went to quarantine.
    pub retired: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Why it could not begin.
    pub why: Option<String>,
    /// The earlier stage that is in its way.
    pub blocked_by: Option<Blocker>,
    /// Whether nothing was done but that its checkpoint, which was not there, was written.
    pub checkpoint_rewritten: bool,
    /// Files that somebody altered.
    #[serde(skip)]
    pub altered: Vec<(String, Alteration)>,
    /// What the stage's `verdict` says.
    pub verdict: Option<bool>,
    /// Elements that came out.
    pub elements: Option<u64>,
    /// Its declared outputs that lie under `outputs/`.
    pub outputs: Vec<String>,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The run's id.
    pub(crate) run_id: String,
    /// The workspace's folder.
    pub workspace: String,
    /// Stages that are no longer declared, whose outputs went to quarantine.
    pub forgotten: Vec<String>,
    /// Files that were moved to quarantine: outputs that are no longer made, and whatever a person wrote in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<KeptFile>,
    /// Stage by stage.
    pub stages: Vec<StageReport>,
    /// What to know of values and agents that the workspace keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stored: Vec<StoredNote>,
    /// Whether it was stopped by the user.
    pub interrupted: bool,
    /// Batches of requests that providers go on with.
    #[serde(default, skip_serializing_if = "is_none")]
    pub under_way: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// The worst of the stages' ends. A stage that counts as failed is one, whatever its checkpoint says.
pub(crate) fn worst(reports: &[StageReport]) -> Option<StageStatus> {
    let order = |status: StageStatus| match status {
        StageStatus::Complete => 0,
        StageStatus::Partial => 1,
        StageStatus::Held | StageStatus::Blocked => 2,
        StageStatus::Failed => 3,
        StageStatus::Altered => 4,
    };
    reports
        .iter()
        .map(StageReport::result)
        .max_by_key(|&status| order(status))
}

impl StageReport {
    /// A stage of which nothing has been done.
    pub(crate) fn of(stage: &Stage, status: StageStatus) -> Self {
        Self {
            stage: stage.name.clone(),
            number: stage.number,
            status,
            failure: status == StageStatus::Failed,
            batches: 0,
            ran: 0,
            reused: 0,
            judged: 0,
            failed: Vec::new(),
            tried: Vec::new(),
            left: 0,
            spent: Spent::default(),
            held: None,
            awaits: None,
            retired: 0,
            seconds: 0.0,
            why: None,
            blocked_by: None,
            checkpoint_rewritten: false,
            altered: Vec::new(),
            verdict: None,
            elements: None,
            outputs: Vec::new(),
        }
    }

    /// How it ended for whoever wants to know whether the run failed.
    pub(crate) fn result(&self) -> StageStatus {
        if self.failure {
            StageStatus::Failed
        } else {
            self.status
        }
    }

    /// The same stage, complete, when it is run once more and there is nothing to do.
    #[must_use]
    pub(crate) fn again(&self) -> Self {
        Self {
            ran: 0,
            reused: self.batches,
            judged: 0,
            retired: 0,
            seconds: 0.0,
            spent: Spent::default(),
            checkpoint_rewritten: false,
            ..self.clone()
        }
    }
}
