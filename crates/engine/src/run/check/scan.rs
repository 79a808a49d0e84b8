//! Scans a stage: collects its batches, their inputs, records and files, and decides each batch.

use crate::run::check::ahead::{SLICE, all_new};
use crate::run::check::batch_scanner::{BatchScanner, CommonFacts, Keep, base_scope};
use crate::run::check::by_page::changed_batches;
use crate::run::check::planned_disk::{BatchDisk, PlannedDisk};
use crate::run::context::Context;
use milepost_core::base::path::RelPath;
use milepost_core::model::stage::{Each, EachSource, Input, InputSource, PathTemplate, Stage};
use milepost_core::model::state::{BatchState, State};
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::expand::{expand, naming_files};
use milepost_core::plan::lineage;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::recorded::Recorded;
use milepost_core::plan::scan::{BatchScan, Collisions, StageScan};
use milepost_store::store::up_to_date::ChangedFiles;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Scans a stage.
///
/// # Errors
/// When its batches cannot be determined.
pub(crate) fn scan_batches(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &State,
    pending: &Pending,
    policy: &(dyn Fn(&str) -> RebuildPolicy + Sync),
    keep: Keep<'_>,
) -> Result<StageScan, String> {
    let scope = base_scope(ctx);
    let written = |pattern: &str| !lineage::writers(ctx.pipeline, stage, pattern).is_empty();
    let common = CommonFacts::of(ctx, stage, state);
    let world = PlannedDisk::new(ctx, stage, pending);
    let differing = if keep == Keep::All || !pending.is_empty() {
        None
    } else {
        ctx.asked.differing()
    };
    let is_by_page = state
        .stages
        .get(&stage.name)
        .is_some_and(|known| !known.pages.is_empty());
    let differing = differing.filter(|differing| is_by_page || are_enough(stage, differing));
    let certain = !world.batches_may_differ();
    let recorded = Recorded::of(state);
    let disk = BatchDisk::new(&world, None);
    let known = state.stages.get(&stage.name);
    // Where pages were not read, only changed files made a difference, and there are the same batches as before.
    let of_pages = known.filter(|_| is_by_page);
    let none = HashSet::new();
    let scanner = BatchScanner {
        ctx,
        stage,
        state,
        recorded: &recorded,
        written: &written,
        world: &world,
        common: &common,
        leaving: &none,
        known,
        policy,
        keep,
        differing: differing.as_ref(),
    };
    if keep == Keep::Slices
        && of_pages.is_none()
        && let Some(files) = naming_files(stage, &scope, &recorded, &disk, &written)
        && files.len() > SLICE
        && let Some((ahead, others)) = all_new(&scanner, files, &scope)
    {
        return Ok(StageScan {
            others,
            ahead,
            collisions: collisions(&scanner, &[])?,
            shared: Arc::clone(&common.shared),
            shared_id: common.shared_id.clone(),
            certain,
            ..StageScan::default()
        });
    }
    let batches = match of_pages {
        Some(known) => differing
            .as_ref()
            .and_then(|differing| changed_batches(ctx, stage, known, differing))
            .ok_or("its changed batches are not known")?,
        None => match expand(stage, &scope, &recorded, &disk, &written) {
            Ok(batches) => batches,
            Err(_) if !certain => Vec::new(),
            Err(error) => return Err(error.to_string()),
        },
    };
    let others = of_pages.map_or(0, |known| known.count() - batches.len() as u64);
    let live: BTreeSet<&str> = batches.iter().map(|batch| batch.key.as_str()).collect();
    let recorded_keys = known.filter(|_| of_pages.is_none());
    let recorded_keys = recorded_keys
        .into_iter()
        .flat_map(|known| known.batches.keys());
    let gone: Vec<String> = recorded_keys
        .filter(|key| !live.contains(key.as_str()))
        .cloned()
        .collect();
    // Their files go to quarantine before any batch runs.
    let leaving: HashSet<&RelPath> = known
        .into_iter()
        .flat_map(|known| gone.iter().filter_map(|key| known.batches.get(key)))
        .flat_map(BatchState::files)
        .collect();
    let scanner = BatchScanner {
        leaving: &leaving,
        ..scanner
    };
    let batches = scanner.scan_all(batches, &scope);
    let collisions = match collisions(&scanner, &batches) {
        Err(_) if !certain => Collisions::default(),
        found => found?,
    };
    Ok(StageScan {
        collisions,
        batches,
        others,
        ahead: Vec::new(),
        shared: Arc::clone(&common.shared),
        shared_id: common.shared_id.clone(),
        certain,
        gone,
    })
}

/// Returns the names that collide. If there are any, the next run warns again.
///
/// # Errors
/// If two batches have a file in common.
fn collisions(scanner: &BatchScanner<'_, '_>, batches: &[BatchScan]) -> Result<Collisions, String> {
    let found = scanner.collisions(batches);
    let found = found.map_err(|error| error.to_string())?;
    if !found.is_empty() {
        scanner.ctx.asked.discard();
    }
    Ok(found)
}

/// Returns true if changed files alone can make a batch of the stage out of date. Lists of files and files named in other files
/// can change in other ways.
fn are_enough(stage: &Stage, differing: &ChangedFiles) -> bool {
    let from_a_file = |each: &Each| matches!(each.source, EachSource::From { .. });
    let is_plain = |input: &Input| match &input.source {
        InputSource::Path(path) => !differing.wrote() || !path.may_be_pattern(),
        InputSource::From { .. } => false,
    };
    let is_listed = |path: &PathTemplate| !differing.wrote() || !path.may_be_pattern();
    !stage.each.iter().any(from_a_file)
        && stage.inputs.iter().all(is_plain)
        && stage.reads.iter().all(is_listed)
}
