//! Collects the details of batches that the scan of very many left out.

use crate::run::check::batch_scanner::{BatchScanner, CommonFacts, Keep, base_scope};
use crate::run::check::planned_disk::PlannedDisk;
use crate::run::context::Context;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::lineage;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::recorded::Recorded;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_store::store::up_to_date::Observations;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How many batches of a stage have their details at once, if [`Keep::Slices`]. Few in debug builds, so that tests have both.
pub(crate) const SLICE: usize = if cfg!(debug_assertions) { 25 } else { 10_000 };

/// Collects the details of batches at these places, which their scan left out, and returns the batches without them. What was decided
/// stays, unless an input is gone.
pub(crate) fn add_details(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &State,
    found: &mut StageScan,
    places: &[usize],
) -> Vec<BatchScan> {
    // The scan observed the same files.
    let off = Observations::off();
    let unobserved = Context {
        asked: &off,
        ..*ctx
    };
    let pending = Pending::default();
    let scanner = BatchScanner {
        ctx: &unobserved,
        stage,
        state,
        recorded: &Recorded::of(state),
        written: &|pattern: &str| !lineage::writers(ctx.pipeline, stage, pattern).is_empty(),
        world: &PlannedDisk::new(&unobserved, stage, &pending),
        common: &CommonFacts {
            shared: Arc::clone(&found.shared),
            shared_id: found.shared_id.clone(),
            ..CommonFacts::of(ctx, stage, state)
        },
        leaving: &HashSet::new(),
        known: state.stages.get(&stage.name),
        policy: &|_| RebuildPolicy::Needed,
        keep: Keep::All,
        may_collide: AtomicBool::new(false),
        differing: None,
    };
    let batches = places.iter().map(|at| found.batches[*at].batch.clone());
    let detailed = scanner.scan_all(batches.collect(), &base_scope(ctx));
    let detailed = places.iter().zip(detailed).map(|(at, detailed)| {
        let batch = &mut found.batches[*at];
        let scanned = std::mem::replace(batch, detailed);
        let facts = scanned.left_out.as_deref();
        if facts.is_some_and(|facts| facts != batch.own.id()) {
            // An input changed since: what the scan observed is not what the batch was built from.
            ctx.asked.spoil();
        }
        if let (Ok(now), Ok(decided)) = (&mut batch.decision, &scanned.decision) {
            now.clone_from(decided);
        }
        scanned
    });
    detailed.collect()
}
