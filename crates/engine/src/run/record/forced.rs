//! Records what a run with `--force` selects before it touches anything, so that a later run rebuilds what this one does not.

use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use milepost_core::base::words::count;
use milepost_core::model::event::{Event, EventType};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::selection::Selection;
use milepost_store::store::iterations;

/// Records the batches that `--force` selects, or removes them with `--no-force`. Batches that no run has built are left out:
/// they run in any case.
///
/// # Errors
/// When the journal cannot be written.
pub(crate) fn note(
    recorder: &mut Recorder<'_>,
    selection: &Selection,
    fresh: bool,
) -> Result<(), RunError> {
    let ctx = recorder.ctx;
    let selected = ctx.pipeline.stages.iter();
    for stage in selected.filter(|stage| selection.wants_stage(ctx.pipeline, stage)) {
        let event = if selection.options.force {
            let event = selection.force(&recorder.state, &stage.name, fresh);
            if let Some(Event::Forced { batches, .. }) = &event
                && stage.refine.is_some()
            {
                // An attempt at a forced batch begins with the first iteration, in this run or a later one.
                for key in batches {
                    iterations::forget(ctx.disk, ctx.layout, &stage.name, key)?;
                }
            }
            event
        } else if selection.options.no_force {
            selection.drop_force(&recorder.state, &stage.name)
        } else {
            None
        };
        if let Some(event) = event {
            let name = batch_name(&stage.name, "");
            let summary = match &event {
                Event::Forced { batches, .. } => {
                    let many = count(batches.len() as u64, "batch is", "batches are");
                    format!("{name}: {many} forced")
                }
                _ => format!("{name}: --force of earlier runs is cancelled"),
            };
            recorder.record(EventType::Revision, "milepost", event, summary)?;
        }
    }
    Ok(())
}
