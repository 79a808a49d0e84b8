//! Runs the batches of a stage. Very many new ones are scanned, run and recorded in slices, so that only a slice is in memory.

use crate::run::batch::dispatch::{Dispatched, dispatch};
use crate::run::batch::events::Order;
use crate::run::batch::stage_context::StageContext;
use crate::run::check::ahead::{SLICE, scan_slice};
use crate::run::error::RunError;
use crate::run::notice::Observer;
use crate::run::record::early_pages::EarlyPages;
use crate::run::record::progress::ProgressWriter;
use crate::run::record::recorder::Recorder;
use crate::run::remote::Remote;
use milepost_core::model::state::BatchState;
use milepost_core::plan::scan::{BatchScan, StageScan};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs batches of a stage: those of `order`, or those ahead. Of the latter, `found` then has those that failed; those that are
/// complete are among the others.
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
    let stage = stage_ctx.stage;
    let mut progress = ProgressWriter::new(recorder.ctx, stage);
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
    if found.ahead.is_empty() {
        return run(recorder, found, order);
    }
    let mut pages = EarlyPages::new(recorder, stage, found)?;
    let mut all = Dispatched::default();
    while !found.ahead.is_empty() && !all.is_closed && !stage_ctx.stop.stopping() {
        let rest = found.ahead.split_off(SLICE.min(found.ahead.len()));
        let slice = std::mem::replace(&mut found.ahead, rest);
        let ctx = recorder.ctx;
        // The progress file names all that failed.
        let mut batches = std::mem::take(&mut found.batches);
        let before = batches.len();
        batches.extend(scan_slice(&ctx, stage, &recorder.state, found, &slice));
        let order = Order {
            indices: (before..batches.len()).collect(),
            at_once: order.at_once.clone(),
            failed_before: all.failed.len() as u64,
            ..*order
        };
        let scan = StageScan {
            others: found.others + found.ahead.len() as u64,
            batches,
            shared: Arc::clone(&found.shared),
            shared_id: found.shared_id.clone(),
            certain: found.certain,
            ..StageScan::default()
        };
        all.add(run(recorder, &scan, &order)?);
        let known = recorder.state.stages.get(&stage.name);
        for batch in scan.batches {
            let known = known.and_then(|known| known.batches.get(&batch.batch.key));
            if known.is_some_and(BatchState::is_settled) {
                found.others += 1;
            } else {
                found.batches.push(BatchScan {
                    decision: batch.decision,
                    ..BatchScan::reused(batch.batch)
                });
            }
        }
        pages.write(recorder, false)?;
    }
    pages.write(recorder, true)?;
    all.left += found.ahead.len() as u64;
    Ok(all)
}
