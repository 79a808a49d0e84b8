//! Moves outputs that no batch makes any more to quarantine.

use crate::run::check::batch_scanner::MARKER;
use crate::run::error::RunError;
use crate::run::record::protect;
use crate::run::record::quarantined::{KeptFile, Removal};
use crate::run::record::recorder::Recorder;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::base::words;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::record::Made;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{BatchState, Phase};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::lineage;
use milepost_core::plan::world::World as _;
use milepost_store::store::disk::parent;
use milepost_store::store::{checkpoint, quarantine};
use std::collections::{BTreeMap, BTreeSet};

/// Why outputs of a batch are retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The stage no longer has the batch.
    Gone,
    /// The batch failed, and its earlier outputs are out of date.
    Failed,
}

/// Moves the outputs of batches to quarantine and records why.
///
/// # Errors
/// When the disk fails.
pub(crate) fn batches(
    recorder: &mut Recorder<'_>,
    stage: &str,
    keys: &[String],
    cause: Cause,
) -> Result<(), RunError> {
    if keys.is_empty() {
        return Ok(());
    }
    // A file of another batch must stay.
    recorder.read_rest()?;
    remove_checkpoints(recorder, stage)?;
    let gone: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let live = live_outputs(recorder, &|name, key| name != stage || !gone.contains(key));
    for key in keys {
        let known = recorder.state.stages.get(stage);
        let Some(batch) = known.and_then(|known| known.batches.get(key)) else {
            continue;
        };
        let declared = recorder.ctx.pipeline.stages.iter();
        let declared = declared.filter(|other| cause == Cause::Failed && other.name == stage);
        let kept: BTreeSet<&RelPath> = declared.flat_map(|stage| former(stage, batch)).collect();
        let paths = files_of(batch).filter(|path| !live.contains(path) && !kept.contains(path));
        let (run, number) = (recorder.run_id(), recorder.counted());
        let folder = quarantine::retired_folder(run, number, stage, key);
        let files = aside(recorder, &folder, paths.cloned());
        let record = batch.record.as_ref();
        if let Some(record) = record.filter(|_| !files.is_empty()) {
            let (disk, layout) = (recorder.ctx.disk, recorder.ctx.layout);
            quarantine::write_record(disk, layout, &folder, (stage, record))?;
        }
        let markers = markers_of(batch);
        let count = files.len() as u64;
        let failed = match &batch.phase {
            Phase::Failed { outcome } if cause == Cause::Failed => Some(outcome.to_string()),
            _ => None,
        };
        let (removal, how) = match failed {
            Some(_) => (
                Removal::Failed,
                "failed, and its earlier outputs are out of date",
            ),
            None => (Removal::Retired, "is no longer produced"),
        };
        let leaving = leaving(recorder, (stage, key), &files, removal)?;
        let moved = words::count(count, "file", "files");
        let summary = format!("{} {how}: {moved} to quarantine", batch_name(stage, key));
        let refs = files.keys().take(100).map(ToString::to_string).collect();
        let event = Event::Retired {
            stage: stage.to_owned(),
            batch: key.clone(),
            files: files.clone(),
            gone: cause == Cause::Gone,
        };
        recorder.record_with(EventType::Revision, "milepost", event, summary, refs)?;
        recorder.flush()?;
        protect::explain(recorder, &leaving)?;
        move_aside(recorder, &files, &markers)?;
        recorder.kept.extend(leaving);
        if let Some(outcome) = failed.as_ref().filter(|_| count > 0) {
            let why = format!("out of date, and rebuilding it failed: {outcome}\n");
            quarantine::write_reason(recorder.ctx.disk, recorder.ctx.layout, &folder, &why)?;
        }
    }
    Ok(())
}

/// Returns the paths of the outputs of the wanted batches.
fn live_outputs(recorder: &Recorder<'_>, wanted: &dyn Fn(&str, &str) -> bool) -> BTreeSet<RelPath> {
    let mut live = BTreeSet::new();
    for (name, known) in &recorder.state.stages {
        let outputs = known.outputs().filter(|(key, _)| wanted(name, key));
        live.extend(outputs.map(|(_, made)| made.path.clone()));
    }
    live
}

/// Returns the marker of a batch, if it has one.
fn markers_of(batch: &BatchState) -> BTreeSet<RelPath> {
    let made = batch.record.iter().flat_map(|record| &record.outputs);
    let markers = made.filter(|made| made.name == MARKER);
    markers.map(|made| made.path.clone()).collect()
}

/// Returns the files that a batch made.
fn files_of(batch: &BatchState) -> impl Iterator<Item = &RelPath> {
    let made = batch.record.iter().flat_map(|record| &record.outputs);
    batch.remains.keys().chain(made.map(|made| &made.path))
}

/// Returns the files of outputs whose earlier files stay.
fn former<'a>(stage: &Stage, batch: &'a BatchState) -> BTreeSet<&'a RelPath> {
    let made = batch.record.iter().flat_map(|record| &record.outputs);
    let kept = made.filter(|made| stage.keeps_former(&made.name));
    kept.map(|made| &made.path).collect()
}

/// Returns files that a batch made before and does not make now, with their paths in quarantine.
///
/// # Errors
/// When records of other batches cannot be read.
pub(crate) fn dropped(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    key: &str,
    made: &[Made],
) -> Result<BTreeMap<RelPath, RelPath>, RunError> {
    let known = recorder.state.stages.get(&stage.name);
    let Some(batch) = known.and_then(|known| known.batches.get(key)) else {
        return Ok(BTreeMap::new());
    };
    let made: BTreeSet<&RelPath> = made.iter().map(|made| &made.path).collect();
    let kept = former(stage, batch);
    let before: Vec<RelPath> = files_of(batch)
        .filter(|path| !made.contains(path) && !kept.contains(path))
        .cloned()
        .collect();
    if before.is_empty() {
        return Ok(BTreeMap::new());
    }
    recorder.read_rest()?;
    let live = live_outputs(recorder, &|name, other| name != stage.name || other != key);
    let before = before.into_iter().filter(|path| !live.contains(path));
    let folder = quarantine::folder(recorder.run_id(), recorder.counted(), "retired");
    Ok(aside(recorder, &folder, before))
}

/// Returns the report of files that move to quarantine.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn leaving(
    recorder: &Recorder<'_>,
    (stage, key): (&str, &str),
    files: &BTreeMap<RelPath, RelPath>,
    why: Removal,
) -> Result<Vec<KeptFile>, RunError> {
    files
        .iter()
        .map(|(from, to)| {
            let was = protect::content_at(recorder, stage, key, from)?;
            Ok(KeptFile::new((stage, key), (from, to), why, was))
        })
        .collect()
}

/// Returns the paths in a folder of quarantine of those files that exist.
fn aside(
    recorder: &Recorder<'_>,
    folder: &RelPath,
    paths: impl Iterator<Item = RelPath>,
) -> BTreeMap<RelPath, RelPath> {
    let mut files = BTreeMap::new();
    for path in paths {
        if recorder.ctx.layout.at(&path).symlink_metadata().is_ok() {
            files.insert(path.clone(), folder.with(&path));
        }
    }
    files
}

/// Moves files to quarantine as recorded, markers first.
///
/// # Errors
/// When the disk fails.
pub(crate) fn move_aside(
    recorder: &Recorder<'_>,
    files: &BTreeMap<RelPath, RelPath>,
    markers: &BTreeSet<RelPath>,
) -> Result<(), RunError> {
    let (first, others): (Vec<_>, Vec<_>) =
        files.iter().partition(|(from, _)| markers.contains(*from));
    for (from, to) in first.into_iter().chain(others) {
        quarantine::keep(recorder.ctx.disk, recorder.ctx.layout, from, to)?;
    }
    Ok(())
}

/// Finishes moves that an earlier run started. A file that appeared at such a path since then is not touched.
///
/// # Errors
/// When the disk fails.
pub(crate) fn finish(recorder: &Recorder<'_>) -> Result<u64, RunError> {
    let mut moved = 0;
    if recorder.state.retiring.is_empty() {
        return Ok(moved);
    }
    let live = live_outputs(recorder, &|_, _| true);
    for (from, to) in &recorder.state.retiring {
        if live.contains(from) {
            continue;
        }
        let (disk, layout) = (recorder.ctx.disk, recorder.ctx.layout);
        if layout.at(to).symlink_metadata().is_err() {
            moved += u64::from(quarantine::keep(disk, layout, from, to)?);
        } else if is_same(recorder, from, to)? {
            // A power failure can leave a renamed file in both folders.
            disk.remove_file(&layout.at(from))?;
            disk.sync_dir(parent(&layout.at(from)))?;
            moved += 1;
        }
    }
    Ok(moved)
}

/// Returns true if two files have the same content.
fn is_same(recorder: &Recorder<'_>, a: &RelPath, b: &RelPath) -> Result<bool, RunError> {
    let digest = |path: &RelPath| {
        let found = recorder.ctx.digest(&FilePath::workspace(path.clone()));
        found.map_err(RunError::World)
    };
    let found = digest(a)?;
    Ok(found.is_some() && found == digest(b)?)
}

/// Retires stages that are no longer declared, and removes checkpoints with another stage number.
///
/// # Errors
/// When the disk fails.
pub(crate) fn stages(recorder: &mut Recorder<'_>) -> Result<Vec<String>, RunError> {
    let mut forgotten = Vec::new();
    remove_unrecorded(recorder)?;
    let stages = recorder.state.stages.iter();
    let known = stages.map(|(name, known)| {
        let has_one = known.status.is_some() || recorder.state.checkpoints.contains_key(name);
        (name.clone(), known.number, has_one)
    });
    let known: Vec<(String, u32, bool)> = known.collect();
    for (name, number, has_checkpoint) in known {
        let mut declared = recorder.ctx.pipeline.stages.iter();
        let declared = declared.find(|stage| stage.name == name);
        let declared = declared.map(|stage| stage.number);
        if has_checkpoint && declared != Some(number) {
            remove_checkpoint(recorder, &name, number)?;
            recorder.flush()?;
        }
        if declared.is_none() {
            let known = recorder.state.stages.get(&name);
            let keys = known.into_iter().flat_map(|known| known.batches.keys());
            let keys: Vec<String> = keys.cloned().collect();
            batches(recorder, &name, &keys, Cause::Gone)?;
            let summary = format!("stage {name} is no longer declared");
            let stage = name.clone();
            let event = Event::StageForgotten { stage };
            recorder.record(EventType::Revision, "milepost", event, summary)?;
            forgotten.push(name);
        }
    }
    if !forgotten.is_empty() {
        // Sealing also removes the manifest of the stage.
        recorder.seal()?;
    }
    Ok(forgotten)
}

/// Removes the checkpoints of later stages that read from a stage durably, before their inputs are replaced.
///
/// # Errors
/// When the disk fails.
pub(crate) fn remove_readers(recorder: &mut Recorder<'_>, stage: &str) -> Result<(), RunError> {
    for down in lineage::downstream(recorder.ctx.pipeline, stage) {
        remove_checkpoint(recorder, &down.name, down.number)?;
    }
    recorder.flush()
}

/// Removes the checkpoints of a stage and of later stages that read from it durably, before their files are replaced.
///
/// # Errors
/// When the disk fails.
pub(crate) fn remove_checkpoints(recorder: &mut Recorder<'_>, stage: &str) -> Result<(), RunError> {
    remove_readers(recorder, stage)?;
    let pipeline = recorder.ctx.pipeline;
    if let Some(declared) = pipeline.stages.iter().find(|other| other.name == stage) {
        remove_checkpoint(recorder, stage, declared.number)?;
    }
    recorder.flush()
}

/// Removes a checkpoint durably, even one without a record, which a killed run left.
///
/// # Errors
/// When the disk fails.
pub(crate) fn remove_checkpoint(
    recorder: &mut Recorder<'_>,
    stage: &str,
    number: u32,
) -> Result<(), RunError> {
    let was_there = protect::put_checkpoint_away(recorder, stage, number)?;
    let known = recorder.state.stages.get(stage);
    let is_known = known.is_some_and(|known| known.status.is_some())
        || recorder.state.checkpoints.contains_key(stage);
    if !was_there && !is_known {
        return Ok(());
    }
    let event = Event::CheckpointRemoved {
        stage: stage.to_owned(),
        number,
    };
    let summary = format!("stage_{number}_complete.json is removed: {stage} must be rebuilt");
    recorder.record(EventType::Revision, "milepost", event, summary)
}

/// Removes checkpoints without a record, which a killed run left. They would not be found once their stage has another number.
fn remove_unrecorded(recorder: &mut Recorder<'_>) -> Result<(), RunError> {
    for number in checkpoint::numbers(recorder.ctx.layout)? {
        let mut stages = recorder.state.stages.iter();
        let is_recorded = stages.any(|(name, known)| {
            known.number == number && recorder.state.checkpoints.contains_key(name)
        });
        if is_recorded {
            continue;
        }
        let mut stages = recorder.state.stages.iter();
        let of_number = stages.find(|(_, known)| known.number == number);
        match of_number.map(|(name, _)| name.clone()) {
            Some(name) => remove_checkpoint(recorder, &name, number)?,
            None => {
                protect::put_checkpoint_away(recorder, "", number)?;
            }
        }
    }
    Ok(())
}
