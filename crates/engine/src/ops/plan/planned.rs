//! What a run would do, as data.

use crate::run::agents::estimate::Asks;
use crate::run::report::Awaits;
use milepost_core::base::digest::Digest;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::fingerprint::Change;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::plan::decide::Alteration;
use milepost_core::plan::schedule::{BatchFacts, Blocker};
use milepost_store::store::layout;
use serde::Serialize;
use std::collections::BTreeSet;

/// What a run would do.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Plan {
    /// The project's name.
    pub project: String,
    /// The workspace's folder.
    pub workspace: String,
    /// Stages that are no longer declared: what they made is retired.
    pub forgotten: Vec<String>,
    /// Files that go to quarantine because nothing makes them any more. A batch that runs may retire others, which are known only
    /// when it has run: files of an output with `*`, and those of a step whose `when` looks at what is read.
    pub retires: Vec<RetiredFile>,
    /// Stage by stage.
    pub stages: Vec<StagePlan>,
    /// Warnings about the declarations.
    pub warnings: Vec<String>,
    /// Warnings and notes about values and agents that the workspace keeps.
    pub stored: Vec<StoredNote>,
}

/// What a run would do of a stage.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StagePlan {
    /// Its name.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// Whether the batches are known, or may be others once earlier stages ran.
    pub certain: bool,
    /// Batches that run, with why.
    pub will: Vec<RunningBatch>,
    /// Batches that run if a condition comes true.
    pub may: Vec<PossibleBatch>,
    /// Batches whose outputs are validated again.
    pub judge: Vec<RevalidatedBatch>,
    /// Batches that are reused.
    pub reused: u64,
    /// Batches that are left out by what was asked for.
    pub left: u64,
    /// Those of them that are left because they failed as they stand.
    #[serde(skip)]
    pub tried: Vec<KnownFailure>,
    /// Batches that there are no more: their outputs are retired.
    pub retire: Vec<String>,
    /// Files that go to quarantine because the stage makes them no more.
    #[serde(skip)]
    pub retires: Vec<RetiredFile>,
    /// Files that somebody altered: the run stops here.
    pub altered: Vec<ModifiedOutput>,
    /// Batches that fail before they begin: an input is missing, or a `[[require]]` does not hold.
    pub missing: Vec<RefusedBatch>,
    /// Why nothing can be told of the stage.
    pub problem: Option<String>,
    /// The earlier stage that is not complete and not asked for either.
    pub blocked: Option<String>,
    /// Which stage that is, and what is wrong with it.
    pub blocked_by: Option<Blocker>,
    /// Whether nothing is done but that its checkpoint, which is not there, is written.
    pub checkpoint: bool,
    /// Whether the stage is left out by what was asked for.
    pub skipped: bool,
    /// What the batches that run ask of agents that cost something.
    pub asks: Option<Asks>,
    /// What those would ask that run only if a condition comes true.
    pub may_ask: Option<Asks>,
    /// What it waits for from outside: these batches are among those that are left.
    pub awaits: Option<Awaits>,
}

impl StagePlan {
    /// Returns true if no batch runs, is validated again or retired, and nothing keeps the plan from knowing.
    pub fn is_idle(&self) -> bool {
        self.certain
            && self.will.is_empty()
            && self.may.is_empty()
            && self.judge.is_empty()
            && self.retire.is_empty()
            && self.missing.is_empty()
            && self.problem.is_none()
    }

    /// Batches that there are, as far as they are known.
    pub fn batches(&self) -> u64 {
        let checkpoint = layout::checkpoint(self.number);
        let altered: BTreeSet<&str> = self
            .altered
            .iter()
            .filter(|file| file.path != checkpoint.as_str())
            .map(|file| file.batch.as_str())
            .collect();
        let listed = self.will.len() + self.may.len() + self.judge.len() + self.missing.len();
        (listed + altered.len()) as u64 + self.reused + self.left
    }
}

/// A file that goes to quarantine because nothing makes it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RetiredFile {
    /// The stage that made it.
    pub stage: String,
    /// The batch that made it.
    pub(crate) batch: String,
    /// The file, in the workspace.
    pub path: String,
}

/// A batch that runs.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RunningBatch {
    /// The batch.
    pub batch: String,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What it depends on.
    #[serde(skip)]
    pub facts: BatchFacts,
}

/// A batch that is left because it failed as it stands.
#[derive(Debug)]
pub struct KnownFailure {
    /// The batch.
    pub batch: String,
    /// What it depends on.
    pub facts: BatchFacts,
}

/// A batch that may run.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct PossibleBatch {
    /// The batch.
    pub(crate) batch: String,
    /// If one of these comes true.
    pub conditions: Vec<Condition>,
}

/// A batch whose outputs are validated again.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RevalidatedBatch {
    /// The batch.
    pub batch: String,
    /// What differs.
    pub changes: Vec<Change>,
    /// What it depends on.
    #[serde(skip)]
    pub facts: BatchFacts,
}

/// A file that somebody altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ModifiedOutput {
    /// The batch that made it.
    pub(crate) batch: String,
    /// The file, in the workspace.
    pub path: String,
    /// What was made; none: nothing says who made it.
    pub recorded: Option<Digest>,
    /// What it is.
    pub found: Digest,
    /// A person pinned it, and it would have to be made again.
    pub pinned: bool,
}

impl ModifiedOutput {
    /// Of what was found of a batch.
    pub(crate) fn of((batch, file): (String, Alteration)) -> Self {
        Self {
            batch,
            path: file.path.to_string(),
            recorded: file.recorded,
            found: file.found,
            pinned: file.pinned,
        }
    }
}

/// A batch whose input is missing, or that a `[[require]]` refuses.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RefusedBatch {
    /// The batch.
    pub batch: String,
    /// The error, where the batch is refused by a `[[require]]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What is missing, or what the `[[require]]` says.
    pub why: String,
}

impl Plan {
    /// Whether a run would do nothing.
    pub fn is_empty(&self) -> bool {
        let rests = |stage: &StagePlan| {
            stage.is_idle()
                && stage.altered.is_empty()
                && stage.blocked.is_none()
                && stage.awaits.is_none()
                && !stage.checkpoint
        };
        self.forgotten.is_empty() && self.stages.iter().all(rests)
    }
}
