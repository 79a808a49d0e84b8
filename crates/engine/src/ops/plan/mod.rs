//! Plans: what a run would do, and why, without running anything.

pub(crate) mod planned;
pub(crate) mod simulation;

pub use crate::run::agents::estimate::{Asks, FirstAction};
pub use crate::run::report::{AwaitedApproval, AwaitedMoney, Awaits};
pub use milepost_core::plan::estimate::Basis;
pub use milepost_core::plan::schedule::{BatchFacts, Blocker, Precondition};
pub use planned::{
    KnownFailure, ModifiedOutput, Plan, PlannedJobs, PossibleBatch, RefusedBatch, RetiredFile,
    RevalidatedBatch, RunningBatch, StagePlan,
};

use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::{OpenProject, state_by_page, state_for_reading};
use crate::ops::project::request::Request;
use crate::ops::project::stored_values::notes;
use crate::ops::run::selected::selection;
use crate::ops::run::up_to_date;
use crate::run::agents::estimate::CostEstimator;
use crate::run::report::StageReport;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::retired;
pub use simulation::PlanDetails;
use simulation::Simulation;

/// How often a plan is repeated because a run works in the workspace meanwhile.
const LOOKS: usize = 20;

/// Returns what a run would do, and why. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, or the workspace cannot be read.
pub fn plan(request: &Request, options: &RunOptions) -> Result<Plan, OpsError> {
    plan_with(request, options, PlanDetails::default())
}

/// Returns a plan as [`plan`] does, with these details.
///
/// # Errors
/// The errors of [`plan`].
pub fn plan_with(
    request: &Request,
    options: &RunOptions,
    details: PlanDetails,
) -> Result<Plan, OpsError> {
    plan_of(&mut open(request)?, request, options, details)
}

/// Plans an open project.
pub(super) fn plan_of(
    opened: &mut OpenProject,
    request: &Request,
    options: &RunOptions,
    details: PlanDetails,
) -> Result<Plan, OpsError> {
    if details.advice {
        opened.warnings.append(&mut opened.advice);
    }
    let selection = selection(opened, options)?;
    if options.covers_everything()
        && let Some(stages) = up_to_date::again(opened)
    {
        return Ok(unchanged(opened, &stages));
    }
    opened.check_schemas()?;
    let mut known = state_by_page(opened)?;
    let agents = opened.planned_agents(request)?;
    let look = |known: &State| {
        let estimator = CostEstimator::new(opened.context(), &agents, options);
        let simulation = Simulation::new(opened, known, &selection, Some(estimator));
        simulation.plan_with_estimates(details)
    };
    let mut stages = look(&known);
    let is_by_page = known.stages.values().any(|known| !known.pages.is_empty());
    if is_by_page && stages.iter().any(|stage| stage.problem.is_some()) {
        // A run may have written the pages anew meanwhile.
        known = state_for_reading(opened)?;
        stages = look(&known);
    }
    // Files that a concurrent run writes look modified to a state that was read before.
    for _ in 0..LOOKS {
        if stages.iter().all(|stage| stage.altered.is_empty()) {
            break;
        }
        let later = state_for_reading(opened)?;
        if !stages.iter().any(|stage| was_made(stage, &later)) {
            break;
        }
        known = later;
        stages = look(&known);
    }
    let forgotten = known.stages.keys();
    let forgotten = forgotten.filter(|name| !is_declared(opened, name));
    Ok(Plan {
        forgotten: forgotten.cloned().collect(),
        retires: retires(opened, &known, &stages),
        ..plan_of_stages(opened, stages)
    })
}

/// Starts a plan with these stages.
fn plan_of_stages(opened: &OpenProject, stages: Vec<StagePlan>) -> Plan {
    Plan {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        forgotten: Vec::new(),
        retires: Vec::new(),
        stages,
        warnings: opened.warnings.clone(),
        half_published: opened.workspace.layout.redirects().half_published(),
        stored: notes(opened),
    }
}

fn is_declared(opened: &OpenProject, name: &str) -> bool {
    let mut stages = opened.pipeline.stages.iter();
    stages.any(|stage| stage.name == name)
}

/// Returns the files that nothing builds any more: first those of stages that are no longer declared.
fn retires(opened: &OpenProject, known: &State, stages: &[StagePlan]) -> Vec<RetiredFile> {
    let stages_before = known.stages.iter();
    let forgotten = stages_before.filter(|(name, _)| !is_declared(opened, name));
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

/// Returns the plan if nothing changed since the last up-to-date check.
fn unchanged(opened: &OpenProject, stages: &[StageReport]) -> Plan {
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
    plan_of_stages(opened, opened.pipeline.stages.iter().map(line).collect())
}

/// Returns true if a file that looked modified is recorded in a later state.
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
