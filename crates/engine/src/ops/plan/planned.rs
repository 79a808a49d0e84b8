//! The result of a plan.

use crate::run::agents::estimate::{Asks, FirstAction};
use crate::run::report::{AwaitedApproval, AwaitedMoney, Awaits};
use milepost_core::base::digest::Digest;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::fingerprint::Change;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::plan::decide::Modification;
use milepost_core::plan::scan::Collisions;
use milepost_core::plan::schedule::{BatchFacts, Blocker};
use milepost_store::store::layout;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

/// A plan: what a run would do, and why.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Plan {
    /// The project's name.
    pub project: String,
    /// The path of the workspace.
    pub workspace: String,
    /// Stages that are no longer declared: their outputs go to quarantine.
    pub forgotten: Vec<String>,
    /// Files that go to quarantine because no stage or batch builds them any more. A batch that runs may retire others, known only after
    /// it ran: files of an output with `*`, and those of a step whose `when` depends on an input.
    pub retires: Vec<RetiredFile>,
    /// The stages, in the order of their numbers.
    pub stages: Vec<StagePlan>,
    /// Warnings about the declarations.
    pub warnings: Vec<String>,
    /// Files that a killed run published and did not put in place. The plan counts them as in place; the next run continues.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub half_published: u64,
    /// Warnings and notes about values and agents stored in the workspace.
    pub stored: Vec<StoredNote>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a run would do about a stage.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and a key of the plan"
)]
#[derive(Debug, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StagePlan {
    /// The stage's name.
    pub stage: String,
    /// The stage's number.
    pub number: u32,
    /// The stage's description.
    pub(crate) description: Option<String>,
    /// True if the batches are known; false if earlier stages may change the list.
    pub certain: bool,
    /// Batches that will run, with reasons.
    pub will: Vec<RunningBatch>,
    /// Batches that run if a condition holds.
    pub may: Vec<PossibleBatch>,
    /// Batches whose outputs are restored from quarantine, without a run.
    pub restore: Vec<String>,
    /// Batches whose outputs will be revalidated without a run.
    pub judge: Vec<RevalidatedBatch>,
    /// Batches that are up to date.
    pub reused: u64,
    /// Batches that are out of date and do not run: they are not selected, exceed the limit, or wait.
    pub left: u64,
    /// The failed batches among `left`: nothing changed since they failed.
    #[serde(skip)]
    pub tried: Vec<KnownFailure>,
    /// Batches that no longer exist: their outputs go to quarantine.
    pub retire: Vec<String>,
    /// Files that go to quarantine because the stage no longer builds them.
    #[serde(skip)]
    pub retires: Vec<RetiredFile>,
    /// Outputs that were modified by hand: the run stops here.
    pub altered: Vec<ModifiedOutput>,
    /// Batches that fail before they begin: an input is missing, a `[[require]]` does not hold, or a request is not sent again.
    pub missing: Vec<RefusedBatch>,
    /// Names of its files that some file systems take for one.
    #[serde(skip_serializing_if = "Collisions::is_empty")]
    pub collisions: Collisions,
    /// Why the stage cannot be planned.
    pub problem: Option<String>,
    /// Why the stage cannot begin, as a sentence.
    pub blocked: Option<String>,
    /// The earlier stage that blocks it.
    pub blocked_by: Option<Blocker>,
    /// True if a run only writes the missing checkpoint.
    pub checkpoint: bool,
    /// True if the stage is not selected.
    pub skipped: bool,
    /// The expected calls of the batches in `will` to paid agents.
    pub asks: Option<Asks>,
    /// The expected calls of the batches in `may` and `judge` to paid agents.
    pub may_ask: Option<Asks>,
    /// True if earlier stages decide what else the stage asks of agents that cost something.
    #[serde(skip)]
    pub asks_more: bool,
    /// The approval that the stage needs; its batches are counted in `left`.
    pub approval: Option<AwaitedApproval>,
    /// The batches that run once they are approved, with reasons.
    pub unapproved: Vec<RunningBatch>,
    /// The expected calls of these batches to paid agents.
    pub unapproved_ask: Option<Asks>,
    /// The money that the stage waits for; its batches are counted in `left`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<AwaitedMoney>,
    /// The batches that run once the run may pay for their calls, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpaid: Vec<RunningBatch>,
    /// The expected calls of these batches to paid agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpaid_ask: Option<Asks>,
    /// The digest of the facts of all batches that are not up to date; `None` unless requested, or if none can run.
    #[serde(skip)]
    pub facts: Option<Digest>,
    /// The first programs or requests of the first batches in `will`, if requested (`plan --verbose`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<FirstAction>,
    /// The number of batches in `will` that `first` is about: some start and ask nothing.
    #[serde(skip)]
    pub looked_at: usize,
    /// The external agents that the stage waits for; its batches are counted in `left`.
    pub awaits: Option<Awaits>,
    /// The jobs that a run would submit; `None` if the batches run on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<PlannedJobs>,
}

/// The jobs that a run would submit for the batches of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct PlannedJobs {
    /// The scheduler.
    pub executor: ExecutorName,
    /// The number of jobs.
    pub jobs: u64,
    /// Maximum batches of one job.
    pub batches_per_job: u64,
}

impl Plan {
    /// Returns a digest of everything that the run of a plan with facts depends on.
    pub fn digest(&self) -> Digest {
        let facts: Vec<Option<Digest>> = self.stages.iter().map(|stage| stage.facts).collect();
        Digest::of(json!([self, facts]).to_string())
    }
}

impl StagePlan {
    /// Returns true if no batch runs, is restored, revalidated or retired, and nothing is uncertain.
    pub fn is_idle(&self) -> bool {
        self.certain
            && self.will.is_empty()
            && self.may.is_empty()
            && self.restore.is_empty()
            && self.judge.is_empty()
            && self.retire.is_empty()
            && self.missing.is_empty()
            && self.problem.is_none()
    }

    /// Returns the number of batches, as far as they are known.
    pub fn batches(&self) -> u64 {
        let checkpoint = layout::checkpoint(self.number);
        let altered = self.altered.iter();
        let altered = altered.filter(|file| file.path != checkpoint.as_str());
        let altered: BTreeSet<&str> = altered.map(|file| file.batch.as_str()).collect();
        let listed = self.will.len() + self.may.len() + self.judge.len() + self.missing.len();
        (listed + self.restore.len() + altered.len()) as u64 + self.reused + self.left
    }
}

/// A file that goes to quarantine because nothing builds it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RetiredFile {
    /// The stage that built it.
    pub stage: String,
    /// The batch that built it.
    pub(crate) batch: String,
    /// The path in the workspace.
    pub path: String,
}

/// A batch that will run.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RunningBatch {
    /// The batch's key.
    pub batch: String,
    /// Why it runs.
    pub reasons: Vec<Reason>,
    /// The facts that the decision is based on.
    #[serde(skip)]
    pub facts: BatchFacts,
}

/// A failed batch that does not run because nothing changed since.
#[derive(Debug)]
pub struct KnownFailure {
    /// The batch's key.
    pub batch: String,
    /// The facts that the decision is based on.
    pub facts: BatchFacts,
}

/// A batch that may run.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct PossibleBatch {
    /// The batch's key.
    pub batch: String,
    /// The conditions; one is enough.
    pub conditions: Vec<Condition>,
    /// Why it is out of date; empty if it is up to date unless a condition holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// A batch whose outputs will be revalidated.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RevalidatedBatch {
    /// The batch's key.
    pub batch: String,
    /// The changed facts.
    pub changes: Vec<Change>,
    /// The facts that the decision is based on.
    #[serde(skip)]
    pub facts: BatchFacts,
}

/// An output that was modified by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ModifiedOutput {
    /// The batch that built it; empty for a checkpoint.
    pub(crate) batch: String,
    /// The path in the workspace.
    pub path: String,
    /// The digest of the recorded output; `None` if no record lists the file.
    pub recorded: Option<Digest>,
    /// The digest of the present file.
    pub found: Digest,
    /// True if the modification was accepted, and the batch would have to be rebuilt.
    pub pinned: bool,
}

impl ModifiedOutput {
    /// Builds it from a modification of a batch.
    pub(crate) fn of((batch, file): (String, Modification)) -> Self {
        Self {
            batch,
            path: file.path.to_string(),
            recorded: file.recorded,
            found: file.found,
            pinned: file.pinned,
        }
    }
}

/// A batch that fails before it begins.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RefusedBatch {
    /// The batch's key.
    pub batch: String,
    /// The error code of the `[[require]]` that does not hold, or of that failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The missing input, the message of the `[[require]]`, or the failure after which its request is not sent again.
    pub why: String,
    /// True if a service has accepted its request, or may have carried it out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sent: bool,
}

impl Plan {
    /// Returns true if a run would do nothing.
    pub fn is_empty(&self) -> bool {
        let rests = |stage: &StagePlan| {
            stage.is_idle()
                && stage.altered.is_empty()
                && stage.blocked.is_none()
                && stage.approval.is_none()
                && stage.awaits.is_none()
                && !stage.checkpoint
        };
        self.forgotten.is_empty() && self.stages.iter().all(rests)
    }
}
