//! Checks whether a stage is complete: recorded, up to date, and with unmodified outputs. Nothing is written.

use crate::ops::plan::simulation::Simulation;
use crate::ops::plan::{AwaitedApproval, AwaitedMoney, Awaits, StagePlan};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::{Runner, Snapshot};
use crate::run::agents::estimate::CostEstimator;
use milepost_core::model::checkpoint::{Checkpoint, Status};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{Phase, StageState, State};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::selection::Selection;
use milepost_store::store::checkpoint;
use milepost_store::store::files::digest_of;
use milepost_store::store::layout;
use serde::Serialize;

/// Whether a stage is complete, and what is missing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Completion {
    /// True if the checkpoint matches its record and says so, a run would do nothing about the stage, and every output has the recorded
    /// digest.
    pub(crate) complete: bool,
    /// The stage's name.
    pub stage: String,
    /// The stage's number.
    pub(crate) number: u32,
    /// The checkpoint; `None` if the stage is not complete.
    pub(crate) state: Option<Checkpoint>,
    /// The path of the checkpoint, in the workspace.
    pub state_file: String,
    /// What is missing; empty if the stage is complete.
    #[serde(skip)]
    pub missing: Vec<MissingPart>,
    /// Files compared with their digests.
    pub(crate) files_checked: u64,
}

/// Something that a stage lacks to be complete.
#[derive(Debug, Clone, PartialEq)]
pub enum MissingPart {
    /// A run builds these batches now.
    Running(Vec<String>, Runner),
    /// The stage cannot begin or be planned: the reason.
    Problem(String),
    /// Batches that fail before they begin, each with the reason.
    Refused(Vec<(String, String)>),
    /// Batches that must run, and the number of all batches.
    MustRun(Vec<String>, u64),
    /// Batches that must run if outputs of an earlier stage change, and the number of all batches.
    MayRun(Vec<String>, u64),
    /// Batches whose outputs must be revalidated, and the number of all batches.
    Unvalidated(Vec<String>, u64),
    /// Outputs that were modified by hand.
    Modified(Vec<String>),
    /// Batches wait for approval.
    Unapproved(AwaitedApproval),
    /// Batches wait for external agents.
    Waiting(Awaits),
    /// Batches wait for budget.
    Unpaid(AwaitedMoney),
    /// Recorded batches that no longer exist.
    Gone(Vec<String>),
    /// The checkpoint with this name does not exist.
    NoCheckpoint(String),
    /// The stage is partial: these batches failed.
    Partial(Vec<String>),
}

/// Checks whether the stage with this number is complete.
///
/// # Errors
/// When there is no project or no such stage, the declarations are wrong, or the workspace cannot be read.
pub fn stage_completion(request: &Request, number: u32) -> Result<Completion, OpsError> {
    let opened = open(request)?;
    let stages = &opened.pipeline.stages;
    let Some(stage) = stages.iter().find(|stage| stage.number == number) else {
        let known: Vec<String> = stages
            .iter()
            .map(|stage| format!("{} {}", stage.number, stage.name))
            .collect();
        return Err(OpsError::Usage(format!(
            "there is no stage {number}; available: {}",
            known.join(", ")
        )));
    };
    of(request, &opened, stage)
}

/// Checks whether a stage of an open workspace is complete.
///
/// # Errors
/// When the workspace cannot be read.
pub(crate) fn of(
    request: &Request,
    opened: &OpenProject,
    stage: &Stage,
) -> Result<Completion, OpsError> {
    let layout = &opened.workspace.layout;
    let present = Snapshot::read(layout)?;
    let agents = opened.planned_agents(request)?;
    let estimator = CostEstimator::new(opened.context(), &agents, &RunOptions::default());
    let all = Selection::default();
    let plans = Simulation::new(opened, &present.state, &all, Some(estimator)).plan();
    let plan = plans.into_iter().find(|plan| plan.stage == stage.name);
    let mut missing = Vec::new();
    if let Some(runner) = &present.runner {
        let running = running(&present.state, stage);
        if !running.is_empty() {
            missing.push(MissingPart::Running(running, runner.clone()));
        }
    }
    missing.extend(plan.iter().flat_map(undone));
    let found = checkpoint::read(layout, stage.number);
    let found = found.map_err(|error| OpsError::World(error.to_string()))?;
    let found = found
        .map(|found| found.checkpoint)
        .filter(|found| found.stage == stage.name);
    match &found {
        None => missing.push(MissingPart::NoCheckpoint(stage.checkpoint_name())),
        Some(found) if found.status == Status::Partial => {
            missing.push(MissingPart::Partial(found.failed.keys().cloned().collect()));
        }
        Some(_) => {}
    }
    let mut files_checked = 0;
    if missing.is_empty() {
        let altered = altered(opened, &present.state, stage, &mut files_checked)?;
        if !altered.is_empty() {
            missing.push(MissingPart::Modified(altered));
        }
    }
    let complete = missing.is_empty();
    Ok(Completion {
        complete,
        stage: stage.name.clone(),
        number: stage.number,
        state: found.filter(|_| complete),
        state_file: layout::checkpoint(stage.number).to_string(),
        missing,
        files_checked,
    })
}

fn running(state: &State, stage: &Stage) -> Vec<String> {
    let known = state.stages.get(&stage.name);
    let batches = known.into_iter().flat_map(|known| &known.batches);
    batches
        .filter(|(_, batch)| matches!(batch.phase, Phase::Running { .. } | Phase::Backoff { .. }))
        .map(|(key, _)| batch_name(&stage.name, key))
        .collect()
}

/// Returns what a run would do about the stage.
fn undone(plan: &StagePlan) -> Vec<MissingPart> {
    let name = |key: &String| batch_name(&plan.stage, key);
    let problems = [&plan.blocked, &plan.problem].into_iter().flatten();
    let mut parts: Vec<MissingPart> = problems.cloned().map(MissingPart::Problem).collect();
    let total = plan.batches();
    let refused = plan.missing.iter();
    let refused = refused.map(|missing| (name(&missing.batch), missing.why.clone()));
    let modified = plan.altered.iter().map(|file| file.path.clone());
    let will = plan.will.iter().map(|batch| &batch.batch);
    let will = will.chain(&plan.restore).map(name);
    let may = plan.may.iter().map(|batch| name(&batch.batch));
    let judge = plan.judge.iter().map(|batch| name(&batch.batch));
    parts.extend([
        MissingPart::Refused(refused.collect()),
        MissingPart::MustRun(will.collect(), total),
        MissingPart::MayRun(may.collect(), total),
        MissingPart::Unvalidated(judge.collect(), total),
        MissingPart::Modified(modified.collect()),
    ]);
    parts.extend(plan.approval.clone().map(MissingPart::Unapproved));
    parts.extend(plan.awaits.clone().map(MissingPart::Waiting));
    parts.extend(plan.money.clone().map(MissingPart::Unpaid));
    parts.push(MissingPart::Gone(plan.retire.clone()));
    parts.retain(|part| !part.is_empty());
    parts
}

impl MissingPart {
    fn is_empty(&self) -> bool {
        match self {
            Self::Refused(batches) => batches.is_empty(),
            Self::MustRun(names, _)
            | Self::MayRun(names, _)
            | Self::Unvalidated(names, _)
            | Self::Modified(names)
            | Self::Gone(names) => names.is_empty(),
            _ => false,
        }
    }
}

fn altered(
    opened: &OpenProject,
    state: &State,
    stage: &Stage,
    checked: &mut u64,
) -> Result<Vec<String>, OpsError> {
    let layout = &opened.workspace.layout;
    let mut wrong = Vec::new();
    let known = state.stages.get(&stage.name);
    let outputs = known.into_iter().flat_map(StageState::outputs);
    let files = outputs.map(|(_, made)| (made.path.clone(), made.digest));
    let recorded = state.checkpoints.get(&stage.name);
    let own = recorded.map(|digest| (layout::checkpoint(stage.number), *digest));
    for (path, digest) in files.chain(own) {
        let found = digest_of(&layout.at(&path)).map_err(OpsError::unreadable(&path))?;
        *checked += 1;
        if found.is_none_or(|(found, _)| found != digest) {
            wrong.push(path.to_string());
        }
    }
    Ok(wrong)
}
