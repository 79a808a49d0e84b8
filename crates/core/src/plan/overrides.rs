//! The accepted modifications by hand of a stage's outputs, and of the stages that it reads from.

use crate::base::natural::natural;
use crate::model::pipeline::Pipeline;
use crate::model::record::Override;
use crate::model::stage::Stage;
use crate::model::state::{StageState, State};
use crate::plan::lineage;

/// Returns the accepted modifications of a stage's outputs, by batch.
pub fn of_stage(name: &str, known: &StageState) -> Vec<Override> {
    let records = known
        .batches
        .values()
        .filter_map(|batch| batch.record.as_ref());
    let mut found: Vec<Override> = records.flat_map(|record| record.overrides(name)).collect();
    found.sort_by(|a, b| natural(&a.batch, &b.batch).then_with(|| a.path.cmp(&b.path)));
    found
}

/// Returns those of all stages that a stage reads from, directly or through others, by number and batch.
pub fn upstream(pipeline: &Pipeline, stage: &Stage, state: &State) -> Vec<Override> {
    let ancestors = lineage::ancestors(pipeline, stage);
    let known = ancestors
        .iter()
        .filter_map(|up| Some((up.name.as_str(), state.stages.get(&up.name)?)));
    known
        .flat_map(|(name, known)| of_stage(name, known))
        .collect()
}
