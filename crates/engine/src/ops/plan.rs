//! What a run would do, and why. Nothing is written.

use crate::ops::outlook;
use crate::ops::project::choices::notes;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::opened::{Opened, state};
use crate::ops::project::request::Request;
use crate::ops::run::up_to_date;
use crate::ops::run::{RunOptions, selection};
use crate::run::agents::estimate::CostEstimator;
pub use crate::run::report::Awaits;
use crate::run::report::StageReport;
use milepost_core::base::digest::Digest;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::fingerprint::Change;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::Alteration;
use milepost_core::plan::retired;
use milepost_store::store::layout;
use serde::Serialize;

pub use crate::run::agents::estimate::Asks;
pub use milepost_core::plan::estimate::Basis;
pub use milepost_core::plan::schedule::{BatchFacts, Blocker, Precondition};

/// How often a plan beside a run looks again.
const LOOKS: usize = 20;

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
    pub will: Vec<Will>,
    /// Batches that run if a condition comes true.
    pub may: Vec<May>,
    /// Batches whose outputs are validated again.
    pub judge: Vec<Judge>,
    /// Batches that are reused.
    pub reused: u64,
    /// Batches that are left out by what was asked for.
    pub left: u64,
    /// Those of them that are left because they failed as they stand.
    #[serde(skip)]
    pub tried: Vec<Tried>,
    /// Batches that there are no more: their outputs are retired.
    pub retire: Vec<String>,
    /// Files that go to quarantine because the stage makes them no more.
    #[serde(skip)]
    pub retires: Vec<RetiredFile>,
    /// Files that somebody altered: the run stops here.
    pub altered: Vec<Altered>,
    /// Batches that fail before they begin: an input is missing, or a `[[require]]` does not hold.
    pub missing: Vec<Missing>,
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
        let altered: std::collections::BTreeSet<&str> = self
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
pub struct Will {
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
pub struct Tried {
    /// The batch.
    pub batch: String,
    /// What it depends on.
    pub facts: BatchFacts,
}

/// A batch that may run.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct May {
    /// The batch.
    pub(crate) batch: String,
    /// If one of these comes true.
    pub conditions: Vec<Condition>,
}

/// A batch whose outputs are validated again.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Judge {
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
pub struct Altered {
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

impl Altered {
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
pub struct Missing {
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

/// What a run would do.
///
/// # Errors
/// When there is no project, its declarations are wrong, or the workspace cannot be read.
pub fn plan(request: &Request, options: &RunOptions) -> Result<Plan, OpsError> {
    plan_of(&mut open(request)?, request, options)
}

/// The same of what is open.
pub(super) fn plan_of(
    opened: &mut Opened,
    request: &Request,
    options: &RunOptions,
) -> Result<Plan, OpsError> {
    let selection = selection(opened, options)?;
    if options.covers_everything()
        && let Some(stages) = up_to_date::again(opened)
    {
        return Ok(unchanged(opened, &stages));
    }
    let layout = &opened.workspace.layout;
    let mut known = state(layout)?;
    let agents = opened.planned_agents(request)?;
    let look = |known: &State| {
        let estimator =
            CostEstimator::new(opened.context(), &opened.project, &agents, options.fresh);
        outlook::with_asks(opened, known, &selection, estimator)
    };
    let mut stages = look(&known);
    // What a run beside this one makes meanwhile looks altered by what was known before.
    for _ in 0..LOOKS {
        if stages.iter().all(|stage| stage.altered.is_empty()) {
            break;
        }
        let later = state(layout)?;
        if !stages.iter().any(|stage| was_made(stage, &later)) {
            break;
        }
        known = later;
        stages = look(&known);
    }
    let is_declared = |name: &str| {
        let stages = &opened.pipeline.stages;
        stages.iter().any(|stage| stage.name == name)
    };
    Ok(Plan {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        forgotten: known
            .stages
            .keys()
            .filter(|name| !is_declared(name))
            .cloned()
            .collect(),
        retires: retires(opened, &known, &stages),
        stages,
        warnings: opened.warnings.clone(),
        stored: notes(opened),
    })
}

/// The files that nothing makes any more, by stage: of stages that are not declared first.
fn retires(opened: &Opened, known: &State, stages: &[StagePlan]) -> Vec<RetiredFile> {
    let declared = |name: &str| {
        opened
            .pipeline
            .stages
            .iter()
            .any(|stage| stage.name == name)
    };
    let forgotten = known.stages.iter().filter(|(name, _)| !declared(name));
    let mut files = Vec::new();
    for (name, known) in forgotten {
        let keys: Vec<String> = known.batches.keys().cloned().collect();
        let gone = retired::of_gone(known, &keys).into_iter();
        files.extend(gone.map(|(batch, path)| RetiredFile {
            stage: name.clone(),
            batch: batch.to_owned(),
            path: path.to_string(),
        }));
    }
    files.extend(
        stages
            .iter()
            .flat_map(|stage| stage.retires.iter().cloned()),
    );
    let layout = &opened.workspace.layout;
    files.retain(|file| layout.root().join(&file.path).symlink_metadata().is_ok());
    files
}

/// The plan when nothing is otherwise than when a run had nothing to do.
fn unchanged(opened: &Opened, stages: &[StageReport]) -> Plan {
    let line = |stage: &Stage| {
        let reports = stages.iter().filter(|report| report.stage == stage.name);
        StagePlan {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            certain: true,
            reused: reports.map(|report| report.batches).sum(),
            ..StagePlan::default()
        }
    };
    Plan {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        forgotten: Vec::new(),
        retires: Vec::new(),
        stages: opened.pipeline.stages.iter().map(line).collect(),
        warnings: opened.warnings.clone(),
        stored: notes(opened),
    }
}

/// Whether a file of a stage that looked altered was made by what is known later.
fn was_made(stage: &StagePlan, later: &State) -> bool {
    let known = later.stages.get(&stage.stage);
    stage.altered.iter().any(|file| {
        later.checkpoints.get(&stage.stage) == Some(&file.found)
            || known.is_some_and(|known| {
                let mut outputs = known.outputs();
                outputs
                    .any(|(_, made)| made.path.as_str() == file.path && made.digest == file.found)
            })
    })
}
