//! Scans a stage of very many new batches: first only whether all can run, then each slice of them when its turn comes.

use crate::run::check::batch_scanner::{
    BatchScanner, CommonFacts, Keep, base_scope, in_shares, set_items,
};
use crate::run::check::planned_disk::PlannedDisk;
use crate::run::context::Context;
use milepost_core::base::collision::collision_hash;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::reason::Reason;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{BatchState, State};
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_core::plan::lineage;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::recorded::Recorded;
use milepost_core::plan::scan::{BatchAhead, BatchScan, StageScan};
use milepost_store::store::up_to_date::Observations;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// How many batches of a stage are scanned at once, if [`Keep::Slices`]. Few in debug builds, so that tests have both.
pub(crate) const SLICE: usize = if cfg!(debug_assertions) { 25 } else { 10_000 };

/// Returns the batches that are named by these files, if each of them is new and can run, or is up to date and complete: the new
/// ones, and the number of the others. `None` if a batch needs more than that.
pub(super) fn all_new(
    scanner: &BatchScanner<'_, '_>,
    files: Vec<FilePath>,
    scope: &Map<String, Value>,
) -> Option<(Vec<BatchAhead>, u64)> {
    let recorded = scanner.known.map(|known| &known.batches);
    let known_of = |key: &str| recorded.and_then(|batches| batches.get(key));
    let keys = || files.iter().map(|file| file.path.stem());
    let new = keys().filter(|key| known_of(key).is_none_or(is_new));
    let still_there = keys().filter(|key| known_of(key).is_some()).count();
    if new.count() <= SLICE || recorded.is_some_and(|batches| batches.len() != still_there) {
        return None;
    }
    // Do not record observations here: each batch is scanned again when its slice runs.
    let off = Observations::off();
    let unobserved = Context {
        asked: &off,
        ..*scanner.ctx
    };
    let pending = Pending::default();
    let world = PlannedDisk::new(&unobserved, scanner.stage, &pending).without_contents();
    let new = BatchScanner {
        ctx: &unobserved,
        recorded: &Recorded::of(scanner.state),
        world: &world,
        known: None,
        keep: Keep::All,
        differing: None,
        ..*scanner
    };
    let count = files.len() as u64;
    let batches: Vec<BatchAhead> = (1..)
        .zip(files)
        .map(|(position, file)| BatchAhead { position, file })
        .collect();
    let look_at = |share: Vec<BatchAhead>| {
        let mut names = Value::Object(scope.clone());
        let (mut ahead, mut outputs) = (Vec::with_capacity(share.len()), Vec::new());
        for batch in share {
            let known = known_of(batch.key());
            let next = batch.batch(scanner.stage);
            set_items(&mut names, &next);
            if known.is_none_or(is_new) {
                let found = new.look(next, &names);
                let is_new = found.decision == Ok(Decision::Will(vec![Reason::NeverMade]));
                if !is_new || scanner.world.retired(batch.key()).next().is_some() {
                    return None;
                }
                let paths = found.targets.values().map(RelPath::as_str);
                outputs.extend(paths.map(collision_hash));
                ahead.push(batch);
            } else {
                let known = known.filter(|known| known.is_settled())?;
                let found = scanner.look(next, &names);
                if found.decision != Ok(Decision::UpToDate) {
                    return None;
                }
                outputs.extend(known.files().map(RelPath::as_str).map(collision_hash));
            }
        }
        Some((ahead, outputs))
    };
    let (mut ahead, mut outputs) = (Vec::new(), Vec::new());
    for share in in_shares(batches, look_at) {
        let (more, others) = share?;
        ahead.extend(more);
        outputs.extend(others);
    }
    outputs.sort_unstable();
    let is_unique = outputs.windows(2).all(|pair| pair[0] != pair[1]);
    if !is_unique {
        return None;
    }
    scanner.world.take_lists(world);
    let others = count - ahead.len() as u64;
    Some((ahead, others))
}

/// Returns true if a batch has nothing yet. An earlier run may have been killed while it ran.
fn is_new(known: &BatchState) -> bool {
    known.record.is_none() && known.remains.is_empty() && known.last_failure().is_none()
}

/// Scans new batches of a stage whose turn has come. What was decided stays, unless an input is gone. The files of these batches are
/// observed now.
pub(crate) fn scan_slice(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &State,
    found: &StageScan,
    slice: &[BatchAhead],
) -> Vec<BatchScan> {
    let pending = Pending::default();
    let scanner = BatchScanner {
        ctx,
        stage,
        state,
        recorded: &Recorded::of(state),
        written: &|pattern: &str| !lineage::writers(ctx.pipeline, stage, pattern).is_empty(),
        world: &PlannedDisk::new(ctx, stage, &pending),
        common: &CommonFacts {
            shared: Arc::clone(&found.shared),
            shared_id: found.shared_id.clone(),
            ..CommonFacts::of(ctx, stage, state)
        },
        leaving: &HashSet::new(),
        known: state.stages.get(&stage.name),
        policy: &|_| RebuildPolicy::Needed,
        keep: Keep::All,
        differing: None,
    };
    let batches = slice.iter().map(|ahead| ahead.batch(stage));
    let mut scanned = scanner.scan_all(batches.collect(), &base_scope(ctx));
    for batch in &mut scanned {
        if let Ok(decision) = &mut batch.decision {
            *decision = Decision::Will(vec![Reason::NeverMade]);
        }
    }
    scanned
}
