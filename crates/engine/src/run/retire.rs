//! Takes away what no live batch makes any more.

use super::engine::RunError;
use super::keeper::Keeper;
use super::kept::{self, Content, KeptFile, Removal};
use super::survey::MARKER;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::record::Made;
use milepost_core::model::state::{BatchState, Phase};
use milepost_core::plan::lineage;
use milepost_core::plan::world::World as _;
use milepost_store::store::disk::parent;
use milepost_store::store::{checkpoint, quarantine};
use std::collections::{BTreeMap, BTreeSet};

/// Why outputs of a batch are retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The stage no longer has the batch: it is forgotten.
    Gone,
    /// The batch failed, and its earlier outputs are out of date: it stays failed.
    Failed,
}

/// Moves the outputs of batches to quarantine and records why.
///
/// # Errors
/// When the disk fails.
pub fn batches(
    keeper: &mut Keeper<'_>,
    stage: &str,
    keys: &[String],
    cause: Cause,
) -> Result<(), RunError> {
    if keys.is_empty() {
        return Ok(());
    }
    remove_checkpoints(keeper, stage)?;
    let gone: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let live = live_outputs(keeper, &|name, key| name != stage || !gone.contains(key));
    for key in keys {
        let known = keeper.state.stages.get(stage);
        let Some(batch) = known.and_then(|known| known.batches.get(key)) else {
            continue;
        };
        let paths = files_of(batch).filter(|path| !live.contains(path));
        let files = aside(keeper, paths.cloned());
        let markers = markers_of(batch);
        let count = files.len() as u64;
        let failed = match &batch.phase {
            Phase::Failed { outcome } if cause == Cause::Failed => Some(outcome.to_string()),
            _ => None,
        };
        let folder = quarantine::folder(keeper.run_id(), keeper.counted(), "retired");
        let removal = match failed {
            Some(_) => Removal::Failed,
            None => Removal::Retired,
        };
        let leaving = leaving(keeper, (stage, key), &files, removal)?;
        let summary = format!(
            "{} {}: {count} files to quarantine",
            milepost_core::plan::expand::batch_name(stage, key),
            if failed.is_some() {
                "failed, and what it made before does not stand"
            } else {
                "is no longer made"
            }
        );
        let refs = files.keys().take(100).map(ToString::to_string).collect();
        let event = Event::Retired {
            stage: stage.to_owned(),
            batch: key.clone(),
            files: files.clone(),
            gone: cause == Cause::Gone,
        };
        keeper.record(EventType::Revision, "milepost", event, summary, refs)?;
        keeper.flush()?;
        kept::explain(keeper, &leaving)?;
        move_aside(keeper, &files, &markers)?;
        keeper.kept.extend(leaving);
        if let Some(outcome) = failed.as_ref().filter(|_| count > 0) {
            let why =
                format!("it does not stand any more, and making it again failed: {outcome}\n");
            quarantine::say_why(keeper.ctx.disk, keeper.ctx.layout, &folder, &why)?;
        }
    }
    Ok(())
}

/// The paths of all that batches made, of those that are wanted.
fn live_outputs(keeper: &Keeper<'_>, wanted: &dyn Fn(&str, &str) -> bool) -> BTreeSet<RelPath> {
    let mut live = BTreeSet::new();
    for (name, known) in &keeper.state.stages {
        let outputs = known.outputs().filter(|(key, _)| wanted(name, key));
        live.extend(outputs.map(|(_, made)| made.path.clone()));
    }
    live
}

/// Its marker, if it has one.
fn markers_of(batch: &BatchState) -> BTreeSet<RelPath> {
    let made = batch.record.iter().flat_map(|record| &record.outputs);
    let markers = made.filter(|made| made.name == MARKER);
    markers.map(|made| made.path.clone()).collect()
}

/// What a batch made.
fn files_of(batch: &BatchState) -> impl Iterator<Item = &RelPath> {
    let made = batch.record.iter().flat_map(|record| &record.outputs);
    batch.remains.keys().chain(made.map(|made| &made.path))
}

/// What a batch made before and does not make this time, with where it goes in quarantine.
pub fn dropped(
    keeper: &Keeper<'_>,
    stage: &str,
    key: &str,
    made: &[Made],
) -> BTreeMap<RelPath, RelPath> {
    let known = keeper.state.stages.get(stage);
    let Some(batch) = known.and_then(|known| known.batches.get(key)) else {
        return BTreeMap::new();
    };
    let made: BTreeSet<&RelPath> = made.iter().map(|made| &made.path).collect();
    let before: Vec<RelPath> = files_of(batch)
        .filter(|path| !made.contains(path))
        .cloned()
        .collect();
    if before.is_empty() {
        return BTreeMap::new();
    }
    let live = live_outputs(keeper, &|name, other| name != stage || other != key);
    let before = before.into_iter().filter(|path| !live.contains(path));
    aside(keeper, before)
}

/// Returns files on their way to quarantine, as they are reported.
///
/// # Errors
/// When one of them cannot be read.
pub fn leaving(
    keeper: &Keeper<'_>,
    (stage, key): (&str, &str),
    files: &BTreeMap<RelPath, RelPath>,
    why: Removal,
) -> Result<Vec<KeptFile>, RunError> {
    files
        .iter()
        .map(|(from, to)| {
            let was = Content::at(keeper, stage, key, from)?;
            Ok(KeptFile::new((stage, key), (from, to), why, was))
        })
        .collect()
}

/// Where these files go in quarantine, for those that are there.
fn aside(keeper: &Keeper<'_>, paths: impl Iterator<Item = RelPath>) -> BTreeMap<RelPath, RelPath> {
    let mut files = BTreeMap::new();
    for path in paths {
        if keeper.ctx.layout.at(&path).symlink_metadata().is_ok() {
            files.insert(path.clone(), keeper.aside("retired", &path));
        }
    }
    files
}

/// Moves files to quarantine as it was recorded, markers before what they stand for.
///
/// # Errors
/// When the disk fails.
pub fn move_aside(
    keeper: &Keeper<'_>,
    files: &BTreeMap<RelPath, RelPath>,
    markers: &BTreeSet<RelPath>,
) -> Result<(), RunError> {
    let (first, others): (Vec<_>, Vec<_>) =
        files.iter().partition(|(from, _)| markers.contains(*from));
    for (from, to) in first.into_iter().chain(others) {
        quarantine::keep(keeper.ctx.disk, keeper.ctx.layout, from, to)?;
    }
    Ok(())
}

/// Finishes what an earlier run had begun to move. What lies at a path since, somebody else put there.
///
/// # Errors
/// When the disk fails.
pub fn finish(keeper: &Keeper<'_>) -> Result<u64, RunError> {
    let mut moved = 0;
    if keeper.state.retiring.is_empty() {
        return Ok(moved);
    }
    let live = live_outputs(keeper, &|_, _| true);
    for (from, to) in &keeper.state.retiring {
        if live.contains(from) {
            continue;
        }
        let (disk, layout) = (keeper.ctx.disk, keeper.ctx.layout);
        if layout.at(to).symlink_metadata().is_err() {
            moved += u64::from(quarantine::keep(disk, layout, from, to)?);
        } else if is_same(keeper, from, to)? {
            // Where a rename is two changes of two folders, a power failure may have left the file at both places.
            disk.remove_file(&layout.at(from))?;
            disk.sync_dir(parent(&layout.at(from)))?;
            moved += 1;
        }
    }
    Ok(moved)
}

/// Whether the same bytes lie at two places.
fn is_same(keeper: &Keeper<'_>, a: &RelPath, b: &RelPath) -> Result<bool, RunError> {
    let digest = |path: &RelPath| {
        let found = keeper.ctx.digest(&FilePath::workspace(path.clone()));
        found.map_err(RunError::World)
    };
    let found = digest(a)?;
    Ok(found.is_some() && found == digest(b)?)
}

/// Forgets stages that are no longer declared, and checkpoints that stand under another number.
///
/// # Errors
/// When the disk fails.
pub fn stages(keeper: &mut Keeper<'_>) -> Result<Vec<String>, RunError> {
    let mut forgotten = Vec::new();
    remove_untold(keeper)?;
    let known: Vec<(String, u32, bool)> = keeper
        .state
        .stages
        .iter()
        .map(|(name, known)| {
            let has_one = known.status.is_some() || keeper.state.checkpoints.contains_key(name);
            (name.clone(), known.number, has_one)
        })
        .collect();
    for (name, number, has_checkpoint) in known {
        let declared = keeper
            .ctx
            .pipeline
            .stages
            .iter()
            .find(|stage| stage.name == name)
            .map(|stage| stage.number);
        if has_checkpoint && declared != Some(number) {
            remove_checkpoint(keeper, &name, number)?;
            keeper.flush()?;
        }
        if declared.is_none() {
            let keys: Vec<String> = keeper
                .state
                .stages
                .get(&name)
                .map_or_else(Vec::new, |known| known.batches.keys().cloned().collect());
            batches(keeper, &name, &keys, Cause::Gone)?;
            let summary = format!("stage {name} is no longer declared");
            keeper.record(
                EventType::Revision,
                "milepost",
                Event::StageForgotten {
                    stage: name.clone(),
                },
                summary,
                Vec::new(),
            )?;
            forgotten.push(name);
        }
    }
    if !forgotten.is_empty() {
        // Its manifest goes with it.
        keeper.seal()?;
    }
    Ok(forgotten)
}

/// Removes the checkpoints of the stages that read from a stage, durably, before what they vouch for is replaced.
///
/// # Errors
/// When the disk fails.
pub fn remove_readers(keeper: &mut Keeper<'_>, stage: &str) -> Result<(), RunError> {
    for down in lineage::downstream(keeper.ctx.pipeline, stage) {
        remove_checkpoint(keeper, &down.name, down.number)?;
    }
    keeper.flush()
}

/// Removes the checkpoints of a stage and of those that read from it, durably, before what they vouch for is replaced.
///
/// # Errors
/// When the disk fails.
pub fn remove_checkpoints(keeper: &mut Keeper<'_>, stage: &str) -> Result<(), RunError> {
    remove_readers(keeper, stage)?;
    let pipeline = keeper.ctx.pipeline;
    if let Some(declared) = pipeline.stages.iter().find(|other| other.name == stage) {
        remove_checkpoint(keeper, stage, declared.number)?;
    }
    keeper.flush()
}

/// Removes a checkpoint durably. One that is there and in no record, because the run was killed in between, is removed too.
///
/// # Errors
/// When the disk fails.
pub fn remove_checkpoint(
    keeper: &mut Keeper<'_>,
    stage: &str,
    number: u32,
) -> Result<(), RunError> {
    let was_there = kept::put_checkpoint_away(keeper, stage, number)?;
    let known = keeper.state.stages.get(stage);
    let is_known = known.is_some_and(|known| known.status.is_some())
        || keeper.state.checkpoints.contains_key(stage);
    if !was_there && !is_known {
        return Ok(());
    }
    let event = Event::CheckpointRemoved {
        stage: stage.to_owned(),
        number,
    };
    let summary = format!("stage_{number}_complete.json is removed: {stage} is to be made again");
    keeper.record(EventType::Revision, "milepost", event, summary, Vec::new())
}

/// Removes checkpoints that no record tells of: the run that wrote them was killed before it said so. What they vouch for would
/// be replaced without a look at them once their stage has another number.
fn remove_untold(keeper: &mut Keeper<'_>) -> Result<(), RunError> {
    for number in checkpoint::numbers(keeper.ctx.layout)? {
        let mut stages = keeper.state.stages.iter();
        let is_told = stages.any(|(name, known)| {
            known.number == number && keeper.state.checkpoints.contains_key(name)
        });
        if is_told {
            continue;
        }
        let mut stages = keeper.state.stages.iter();
        let of_number = stages.find(|(_, known)| known.number == number);
        match of_number.map(|(name, _)| name.clone()) {
            Some(name) => remove_checkpoint(keeper, &name, number)?,
            None => {
                kept::put_checkpoint_away(keeper, "", number)?;
            }
        }
    }
    Ok(())
}
