//! Explains why a stage, a batch or a file is in its present state, by the decision that a plan makes.

mod alone;
mod batch;
mod explanation;
pub(crate) mod file;
pub(crate) mod makers;
mod settled;
mod suggestions;

pub use explanation::{
    BatchVerdict, BatchWhy, FileMade, FileState, FileWhy, InputFile, MadeBy, Origin, OutputFile,
    StageWhy, Verdict, Why,
};

use crate::ops::plan::simulation::Simulation;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::ops::run::up_to_date;
use crate::run::agents::estimate::CostEstimator;
use crate::run::check::batch_scanner::Keep;
pub(crate) use batch::naming;
use batch::{batch_why, explain, stage_why};
use milepost_core::model::fingerprint::Facts;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::selection::{Selection, Target};

/// Explains a stage, a batch (`STAGE/BATCH`) or a file. Nothing is written.
///
/// # Errors
/// When there is no project, the workspace cannot be read, or `what` names nothing known.
pub fn why(request: &Request, what: &str) -> Result<Why, OpsError> {
    let mut opened = open_recorded(request)?;
    if let Some(why) = opened.no_run() {
        return recorded(&opened, request, what, why);
    }
    // This reads only the pages that it needs. Anything else, errors included, is explained from all pages below.
    if let Ok(Some(why)) = settled::file(&opened, &request.folder, what) {
        return Ok(why);
    }
    if let Some(why) = alone::why(&mut opened, request, what) {
        return Ok(why);
    }
    let stages = up_to_date::again(&mut opened);
    if let Some(stages) = stages {
        let stage = opened.pipeline.stage(what);
        if let Some(stage) = stage.filter(|stage| !stage.each.is_empty())
            && let Some(report) = stages.iter().find(|report| report.stage == stage.name)
        {
            let batches = report.batches;
            return Ok(Why::Stage(StageWhy {
                batches,
                reused: batches,
                ..StageWhy::of(stage)
            }));
        }
        if let Ok(Some(why)) = settled::batch(&opened, what) {
            return Ok(why);
        }
    }
    let present = Snapshot::read(&opened.workspace.layout)?;
    let state = &present.state;
    if let Ok(target) = Target::parse(&opened.pipeline, what)
        && let Some(stage) = opened.pipeline.stage(&target.stage)
    {
        // The only batch of a stage without `each` has an empty key.
        let key = target.batch.as_deref().unwrap_or_default();
        let everything = Selection::default();
        let mut simulation = Simulation::new(&opened, state, &everything, None);
        match simulation.scan(stage, Keep::And(key)) {
            Err(problem) if target.batch.is_none() => {
                return Ok(Why::Stage(StageWhy {
                    problem: Some(problem),
                    ..StageWhy::of(stage)
                }));
            }
            Err(_) => {}
            Ok(found) => {
                let mut batches = || {
                    let agents = opened.planned_agents(request)?;
                    let ctx = opened.context();
                    let estimator = CostEstimator::new(ctx, &agents, &RunOptions::default());
                    let batches = simulation.batches(stage, &found, &estimator);
                    batches.map_err(OpsError::World)
                };
                let mut all = found.batches.iter();
                if let Some(place) = all.position(|batch| batch.batch.key == key) {
                    return batch_why(&opened, state, stage, (&found, &batches()?), place);
                }
                if target.batch.is_none() {
                    return Ok(Why::Stage(stage_why(stage, &found, &batches()?)));
                }
            }
        }
    }
    if let Some(found) = file::file_why(&opened, &request.folder, state, what)? {
        return Ok(Why::File(Box::new(found)));
    }
    Err(suggestions::unknown(&opened, state, what))
}

/// Explains what is recorded of a stage, a batch or a file, if the declarations do not tell what a run would do.
fn recorded(
    opened: &OpenProject,
    request: &Request,
    what: &str,
    why: String,
) -> Result<Why, OpsError> {
    let state = &Snapshot::read(&opened.workspace.layout)?.state;
    if let Ok(target) = Target::parse(&opened.pipeline, what)
        && let Some(stage) = opened.pipeline.stage(&target.stage)
    {
        let known = state.stages.get(&stage.name);
        // The only batch of a stage without `each` has an empty key.
        let key = target.batch.as_deref().unwrap_or_default();
        if known.is_some_and(|known| known.batches.contains_key(key)) {
            let nothing = (&Facts::default(), &Facts::default());
            let verdict = Verdict::Impossible { why };
            return explain(opened, state, stage, key, verdict, nothing);
        }
        if target.batch.is_none() {
            return Ok(Why::Stage(StageWhy {
                problem: Some(why),
                ..StageWhy::of(stage)
            }));
        }
    }
    match file::file_why(opened, &request.folder, state, what)? {
        Some(found) => Ok(Why::File(Box::new(found))),
        None => Err(suggestions::unknown(opened, state, what)),
    }
}
