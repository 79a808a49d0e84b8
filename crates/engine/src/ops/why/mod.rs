//! Explains why a stage, a batch or a file is as it is: the decision that a plan makes, with its facts.

mod batch;
mod explanation;
mod file;
pub(crate) mod makers;
mod suggestions;

pub use explanation::{
    BatchVerdict, BatchWhy, FileMade, FileState, FileWhy, InputFile, MadeBy, Origin, OutputFile,
    StageWhy, Verdict, Why,
};

use crate::ops::plan::simulation::look;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::opened::Opened;
use crate::ops::project::present::Present;
use crate::ops::project::request::Request;
use crate::ops::run::up_to_date;
use crate::run::agents::estimate::CostEstimator;
use crate::run::check::scan::Keep;
use batch::{batch_why, stage_why};
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::selection::Target;
use std::collections::BTreeMap;

/// Why a stage, a batch (`STAGE/BATCH`) or a file is as it is. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, the workspace cannot be read, or nothing of that name is known.
pub fn why(request: &Request, what: &str) -> Result<Why, OpsError> {
    let mut opened = open(request)?;
    let stages = up_to_date::again(&mut opened);
    if let Some(stage) = opened
        .pipeline
        .stage(what)
        .filter(|stage| !stage.each.is_empty())
        && let Some(stages) = stages
        && let Some(report) = stages.iter().find(|report| report.stage == stage.name)
    {
        let batches = report.batches;
        return Ok(Why::Stage(StageWhy {
            batches,
            reused: batches,
            ..StageWhy::of(stage)
        }));
    }
    let present = Present::read(&opened.workspace.layout)?;
    let state = &present.state;
    if let Ok(target) = Target::parse(&opened.pipeline, what)
        && let Some(stage) = opened.pipeline.stage(&target.stage)
    {
        // The only batch of a stage without `each` has the empty key.
        let key = target.batch.as_deref().unwrap_or_default();
        let found = look(&opened, state, stage, Keep::And(key));
        match (target.batch, found) {
            (None, Ok(found)) if stage.each.is_empty() => {
                let waits = waits(request, &opened, stage, &found)?;
                if let Some(batch) = found.batches.first() {
                    return batch_why(&opened, state, stage, (&found, &waits), batch);
                }
                return Ok(Why::Stage(stage_why(stage, Ok(found), &waits)));
            }
            (None, found) => {
                let waits = match &found {
                    Ok(found) => waits(request, &opened, stage, found)?,
                    Err(_) => BTreeMap::new(),
                };
                return Ok(Why::Stage(stage_why(stage, found, &waits)));
            }
            (Some(key), Ok(found)) => {
                if let Some(batch) = found.batches.iter().find(|one| one.batch.key == key) {
                    let waits = waits(request, &opened, stage, &found)?;
                    return batch_why(&opened, state, stage, (&found, &waits), batch);
                }
            }
            (Some(_), Err(_)) => {}
        }
    }
    if let Some(found) = file::file_why(&opened, &request.folder, state, what)? {
        return Ok(Why::File(Box::new(found)));
    }
    Err(suggestions::unknown(&opened, state, what))
}

/// The batches that wait for someone outside to answer: for which agent.
fn waits(
    request: &Request,
    opened: &Opened,
    stage: &Stage,
    found: &StageScan,
) -> Result<BTreeMap<String, String>, OpsError> {
    let is_open = |batch: &&BatchScan| matches!(batch.decision, Ok(Decision::Will(_)));
    let open: Vec<&BatchScan> = found.batches.iter().filter(is_open).collect();
    let agents = opened.planned_agents(request)?;
    let estimator = CostEstimator::new(opened.context(), &opened.project, &agents, false);
    let awaited = estimator.awaited(stage, &open).map_err(OpsError::World)?;
    let waits = open.iter().zip(awaited);
    Ok(waits
        .filter_map(|(batch, sent)| Some((batch.batch.key.clone(), sent?.agent)))
        .collect())
}
