//! Runs the batches of a stage in slices: of very many, only those of a slice have their details in memory.

use crate::run::batch::dispatch::{Dispatched, dispatch};
use crate::run::batch::events::Order;
use crate::run::batch::stage_context::StageContext;
use crate::run::check::details::{SLICE, add_details};
use crate::run::error::RunError;
use crate::run::notice::Observer;
use crate::run::record::progress::ProgressWriter;
use crate::run::record::recorder::Recorder;
use crate::run::remote::Remote;
use milepost_core::plan::scan::StageScan;
use std::collections::BTreeSet;

/// Runs batches of a stage: together, or in slices if the scan left details out.
///
/// # Errors
/// When the disk fails or the journal cannot be written.
pub(crate) fn run_slices(
    recorder: &mut Recorder<'_>,
    stage_ctx: &StageContext<'_>,
    found: &mut StageScan,
    order: &Order<'_>,
    observer: &mut dyn Observer,
    remote: Option<&Remote<'_>>,
) -> Result<Dispatched, RunError> {
    let mut progress = ProgressWriter::new(recorder.ctx, stage_ctx.stage);
    progress.write_if_due(recorder, found, &BTreeSet::new())?;
    let mut run = |recorder: &mut Recorder<'_>, found: &StageScan, order: &Order<'_>| {
        dispatch(
            recorder,
            stage_ctx,
            found,
            order,
            observer,
            &mut progress,
            remote,
        )
    };
    if found.batches.iter().all(|batch| batch.left_out.is_none()) {
        return run(recorder, found, order);
    }
    let mut all = Dispatched::default();
    let mut slices = order.indices.chunks(SLICE);
    for slice in slices.by_ref() {
        let ctx = recorder.ctx;
        let scanned = add_details(&ctx, stage_ctx.stage, &recorder.state, found, slice);
        let order = Order {
            indices: slice.to_vec(),
            at_once: order.at_once.clone(),
            failed_before: all.failed.len() as u64,
            ..*order
        };
        all.add(run(recorder, found, &order)?);
        for (place, scanned) in slice.iter().zip(scanned) {
            found.batches[*place] = scanned;
        }
        if all.is_closed || stage_ctx.stop.stopping() {
            break;
        }
    }
    all.left += slices.map(|slice| slice.len() as u64).sum::<u64>();
    Ok(all)
}
