//! Records what a run with `--force` selects before it touches anything, so that a later run rebuilds what this one does not.

use super::attempt::batch_name;
use super::engine::RunError;
use super::keeper::Keeper;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::state::{BatchState, Phase};
use milepost_core::plan::selection::Selection;
use milepost_store::store::rounds;
use std::collections::BTreeSet;

/// Records the batches that `--force` selects, or withdraws it from them where `--no-force` says so. Batches that no run has made
/// are not named: they run in any case.
///
/// # Errors
/// When the journal cannot be written.
pub fn note(keeper: &mut Keeper<'_>, selection: &Selection, fresh: bool) -> Result<(), RunError> {
    let ctx = keeper.ctx;
    let selected = ctx.pipeline.stages.iter();
    for stage in selected.filter(|stage| selection.wants_stage(ctx.pipeline, stage)) {
        let event = if selection.options.force {
            let known = keeper.state.stages.get(&stage.name);
            let known = known.into_iter().flat_map(|known| &known.batches);
            let is_selected = |(key, batch): &(&String, &BatchState)| {
                selection.wants_batch(&stage.name, key)
                    && (!selection.options.failed || is_failed(batch))
            };
            let batches: BTreeSet<String> = known
                .filter(is_selected)
                .map(|(key, _)| key.clone())
                .collect();
            let open = fresh && !selection.options.failed && selection.wants_whole(&stage.name);
            if stage.refine.is_some() {
                // An attempt at a forced batch begins with the first iteration, in this run or a later one.
                for key in &batches {
                    rounds::forget(ctx.disk, ctx.layout, &stage.name, key)?;
                }
            }
            (open || !batches.is_empty()).then_some(Event::Forced {
                stage: stage.name.clone(),
                batches,
                fresh,
                open,
            })
        } else if selection.options.no_force {
            selection.drop_force(&keeper.state, &stage.name)
        } else {
            None
        };
        if let Some(event) = event {
            let name = batch_name(&stage.name, "");
            let summary = match &event {
                Event::Forced { batches, .. } => {
                    format!("{name}: {} batches are forced", batches.len())
                }
                _ => format!("{name}: --force of earlier runs is withdrawn"),
            };
            keeper.record(EventType::Revision, "milepost", event, summary, Vec::new())?;
        }
    }
    Ok(())
}

/// Returns true if a batch failed when it was last tried, as a whole or in part.
pub fn is_failed(batch: &BatchState) -> bool {
    let record = batch.record.as_ref();
    matches!(batch.phase, Phase::Failed { .. })
        || record.is_some_and(|record| record.failure().is_some())
}
