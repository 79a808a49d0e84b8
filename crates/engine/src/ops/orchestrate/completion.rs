//! Checks whether a stage is complete: recorded, up to date, and with unmodified outputs. Nothing is written.

use crate::ops::plan::StagePlan;
use crate::ops::plan::simulation::Simulation;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::run::agents::estimate::CostEstimator;
use milepost_core::model::checkpoint::{Checkpoint, Status};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{Phase, StageState, State};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::selection::Selection;
use milepost_store::store::checkpoint;
use milepost_store::store::files::digest_of;
use milepost_store::store::layout;
use serde::Serialize;

/// The most batches or files listed in one reason.
const NAMED: usize = 5;

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
    /// What is missing, a line each; empty if the stage is complete.
    pub missing: Vec<String>,
    /// Files compared with their digests.
    pub(crate) files_checked: u64,
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
            "there is no stage {number}: there are {}",
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
    let estimator = CostEstimator::new(opened.context(), &opened.project, &agents, false);
    let all = Selection::default();
    let plans = Simulation::new(opened, &present.state, &all, Some(estimator)).plan();
    let plan = plans.into_iter().find(|plan| plan.stage == stage.name);
    let mut missing = Vec::new();
    if let Some(runner) = &present.runner {
        let running = running(&present.state, stage);
        if !running.is_empty() {
            missing.push(format!(
                "{} are running, started by `{}` (run {})",
                named(&running),
                runner.command,
                runner.run_id
            ));
        }
    }
    missing.extend(plan.iter().flat_map(undone));
    let found = checkpoint::read(layout, stage.number);
    let found = found.map_err(|error| OpsError::World(error.to_string()))?;
    let found = found
        .map(|found| found.checkpoint)
        .filter(|found| found.stage == stage.name);
    match &found {
        None => missing.push(format!("`{}` is not there", stage.checkpoint_name())),
        Some(found) if found.status == Status::Partial => {
            let failed: Vec<String> = found.failed.keys().cloned().collect();
            missing.push(format!("the stage is partial: {} failed", named(&failed)));
        }
        Some(_) => {}
    }
    let mut files_checked = 0;
    if missing.is_empty() {
        let altered = altered(opened, &present.state, stage, &mut files_checked)?;
        if !altered.is_empty() {
            missing.push(format!("modified by hand: {}", named(&altered)));
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

/// Returns what a run would do about the stage, a line each.
fn undone(plan: &StagePlan) -> Vec<String> {
    let mut lines = Vec::new();
    let name = |key: &str| batch_name(&plan.stage, key);
    lines.extend(plan.blocked.clone());
    lines.extend(plan.problem.clone());
    for missing in plan.missing.iter().take(NAMED) {
        lines.push(format!("{}: {}", name(&missing.batch), missing.why));
    }
    if plan.missing.len() > NAMED {
        lines.push(format!(
            "inputs of {} more batches are missing",
            plan.missing.len() - NAMED
        ));
    }
    let total = plan.batches();
    let groups: [(Vec<String>, &str); 4] = [
        (
            plan.will.iter().map(|will| name(&will.batch)).collect(),
            "must run",
        ),
        (
            plan.may.iter().map(|may| name(&may.batch)).collect(),
            "must run if outputs of an earlier stage change",
        ),
        (
            plan.judge.iter().map(|judge| name(&judge.batch)).collect(),
            "must be validated again",
        ),
        (
            plan.altered.iter().map(|file| file.path.clone()).collect(),
            "modified by hand",
        ),
    ];
    for (names, what) in groups {
        if names.is_empty() {
            continue;
        }
        let of = if what.starts_with("modified") || total < 2 {
            String::new()
        } else {
            format!("{} of {total} batches ", names.len())
        };
        lines.push(format!("{of}{what}: {}", named(&names)));
    }
    if let Some(awaits) = &plan.awaits {
        lines.push(format!(
            "{} batches wait for external agents ({})",
            awaits.batches,
            awaits.agents.join(", ")
        ));
    }
    if !plan.retire.is_empty() {
        lines.push(format!("{} no longer exist", named(&plan.retire)));
    }
    lines
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
        let found = digest_of(&layout.at(&path))
            .map_err(|error| OpsError::World(format!("cannot read `{path}`: {error}")))?;
        *checked += 1;
        if found.is_none_or(|(found, _)| found != digest) {
            wrong.push(path.to_string());
        }
    }
    Ok(wrong)
}

/// Lists names: `a, b, c and 12 more`.
fn named(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
