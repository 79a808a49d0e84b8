//! Explains a batch by its own files, if no other batch can make a difference to it.

use super::batch::batch_why;
use super::explanation::Why;
use crate::ops::plan::simulation::Simulation;
use crate::ops::project::open_project::{OpenProject, state_by_page};
use crate::ops::project::request::Request;
use crate::ops::run::up_to_date;
use crate::run::agents::estimate::CostEstimator;
use crate::run::check::batch_scanner::Keep;
use milepost_core::base::path::FilePath;
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::stage::{EachSource, Stage};
use milepost_core::model::state::StageState;
use milepost_core::plan::changed::needs_few;
use milepost_core::plan::lineage;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::selection::{Selection, Target};
use milepost_store::store::manifest;
use std::collections::HashSet;

/// Explains a batch of a stage that reads nothing of other stages, after a run that finished everything. `None` if more must be
/// known; then the caller finds out, and reports errors.
pub(super) fn why(opened: &mut OpenProject, request: &Request, what: &str) -> Option<Why> {
    let target = Target::parse(&opened.pipeline, what).ok()?;
    let stage = opened.pipeline.stage(&target.stage)?.clone();
    let key = target.batch?;
    let is_alone = needs_few(&opened.pipeline, &stage, false)
        && lineage::upstream(&opened.pipeline, &stage).is_empty()
        && is_one_file_a_key(&stage);
    if !is_alone {
        return None;
    }
    let noted = up_to_date::noted(opened)?;
    let known = StageState {
        pages: noted.get(&stage.name)?.pages.clone(),
        ..StageState::default()
    };
    let page = known.pages.get(known.page_of(&key)?)?;
    let read = manifest::read_pages(&opened.workspace.layout, &stage.name, [page]).ok()?;
    let record = read.batches.get(&key)?.record.as_ref()?;
    let inputs = record.facts.iter();
    let inputs = inputs.filter(|(key, value)| key.kind == FactKind::Input && !value.is("absent"));
    let inputs: HashSet<FilePath> = inputs
        .map(|(key, _)| key.name.parse().ok())
        .collect::<Option<_>>()?;
    let ctx = opened.context();
    let is_there = |file: &FilePath| ctx.files.resolve(file).is_ok_and(|path| path.is_file());
    if !inputs.iter().all(is_there) {
        return None;
    }
    up_to_date::assume(opened, inputs, noted);
    let state = state_by_page(opened).ok()?;
    let everything = Selection::default();
    let mut simulation = Simulation::new(opened, &state, &everything, None);
    let found = simulation.scan(&stage, Keep::And(&key)).ok()?;
    let place = found
        .batches
        .iter()
        .position(|batch| batch.batch.key == key)?;
    let agents = opened.planned_agents(request).ok()?;
    let estimator = CostEstimator::new(opened.context(), &agents, &RunOptions::default());
    let batches = simulation.batches(&stage, &found, &estimator).ok()?;
    let state = simulation.state();
    batch_why(opened, state, &stage, (&found, &batches), place).ok()
}

/// Returns true if no two files of the stage's `each` can have one key: they are in one folder and have one ending.
fn is_one_file_a_key(stage: &Stage) -> bool {
    stage.each.iter().all(|each| match &each.source {
        EachSource::Path(path) => {
            let pattern = path.pattern();
            let mut parts = pattern.split('/').rev();
            let name = parts.next().unwrap_or_default();
            let ending = name.rsplit(['*', '?', ']', '}']).next().unwrap_or_default();
            ending.starts_with('.') && !parts.any(milepost_core::base::glob::is_pattern)
        }
        _ => false,
    })
}
