//! The stages of a run with the counts that earlier runs let it expect.

use crate::run::batch::events::AtOnce;
use crate::run::batch::workers::at_once;
use crate::run::context::Context;
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::selection::Selection;

/// A stage of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpectedStage {
    /// The name of the stage.
    pub stage: String,
    /// The number of its batches on record.
    pub batches: u64,
    /// The seconds that all of them take, as many at once as this run allows; `None` without a record.
    pub seconds: Option<f64>,
}

/// Returns the stages of a run, in order.
pub(crate) fn stages(
    ctx: &Context<'_>,
    state: &State,
    selection: &Selection,
    options: &RunOptions,
) -> Vec<ExpectedStage> {
    let pipeline = ctx.pipeline;
    let base = ctx.settings.scope(pipeline);
    let jobs = options.jobs.map(|jobs| usize::from(jobs.get()));
    let stages = pipeline.stages.iter();
    let stages = stages.filter(|stage| selection.wants_stage(pipeline, stage));
    let expected = stages.map(|stage| {
        let known = state.stages.get(&stage.name).into_iter();
        let read = known.clone().flat_map(|known| known.batches.values());
        let read = read.filter_map(|batch| Some((1, batch.record.as_ref()?.duration_ms)));
        let unread = known.flat_map(StageState::unread);
        let unread = unread.map(|totals| (totals.batches, totals.milliseconds));
        let took = read.chain(unread);
        let (batches, took_ms) = took.fold((0_u64, 0_u64), |(batches, sum), (more, took)| {
            (batches + more, sum.saturating_add(took))
        });
        let at_once = match at_once(stage, &base, jobs, false) {
            Ok(AtOnce::Batches(count)) => count as u64,
            // The stage reports the error when it starts.
            Ok(AtOnce::Values(..)) | Err(_) => 1,
        };
        let seconds = took_ms as f64 / 1000.0 / at_once.clamp(1, batches.max(1)) as f64;
        ExpectedStage {
            stage: stage.name.clone(),
            batches,
            seconds: (batches > 0).then_some(seconds),
        }
    });
    expected.collect()
}
