//! Commits finished batches in groups: flushes the data, records the batches, renames the files into place, flushes the
//! folders, and records that.
//!
//! 1. A worker writes the outputs into scratch, hashes them while it writes, and validates them there.
//! 2. The dispatcher collects finished batches in a group. The group closes after 200 ms, at 1,000 batches, or when nothing
//!    runs.
//! 3. The group's data is flushed, `published` records are appended with one write, and the journal is flushed. From here on
//!    the batches are finished.
//! 4. The files are renamed into place, the folders are flushed, and a `barrier` is appended.

use crate::run::batch::stage_context::Produced;
use crate::run::check::batch_scanner::MARKER;
use crate::run::check::dependencies;
use crate::run::error::RunError;
use crate::run::record::begin;
use crate::run::record::protect;
use crate::run::record::quarantined::{Content, KeptFile, Removal};
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use crate::steps::command::nothing_strayed;
use milepost_core::base::digest::Digest;
use milepost_core::base::duration::show_duration;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::base::words;
use milepost_core::model::call::Spent;
use milepost_core::model::event::{Event, EventType, Publish};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::world::World;
use milepost_store::store::accepted;
use milepost_store::store::folders::{Folders, FoundFile};
use milepost_store::store::iterations;
use milepost_store::store::publish;
use milepost_store::store::quarantine;
use milepost_store::store::scratch::{Scratch, ScratchPool};
use milepost_store::store::stamp::FileStamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// A finished batch that waits to be committed.
pub(crate) struct Finished {
    /// The position in the scan.
    pub(crate) index: usize,
    pub(crate) produced: Produced,
    /// The scratch folder with its files.
    pub(crate) scratch: Scratch,
    /// How many attempts it took.
    pub(crate) attempts: u32,
    /// The cost of its calls.
    pub(crate) spent: Option<Spent>,
    /// How long the last attempt took.
    pub(crate) took: Duration,
}

/// Commits a group. Afterwards all its files are in place and durable.
///
/// # Errors
/// When the disk fails. The next run repairs what was recorded.
pub(crate) fn commit(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    scan: &StageScan,
    group: Vec<Finished>,
    scratch_pool: &ScratchPool,
) -> Result<(), RunError> {
    if group.is_empty() {
        return Ok(());
    }
    let ctx = recorder.ctx;
    let files = group.iter().flat_map(|finished| &finished.produced.files);
    let places: Vec<RelPath> = files.map(|(_, scratch)| scratch.clone()).collect();
    publish::flush_group(ctx.disk, ctx.layout, &places)?;
    // Checkpoints of later stages stay valid if the outputs do not change.
    let differs = |finished: &Finished| differs(recorder, stage, scan, finished);
    if group.iter().any(differs) {
        retire::remove_readers(recorder, &stage.name)?;
    }
    recorder.gather();
    // A batch with a placeholder is not built, and continues with the iteration that failed.
    let is_made = |finished: &&Finished| finished.produced.placeholder.is_none();
    let made = group.iter().filter(is_made);
    let indices: Vec<usize> = made.map(|finished| finished.index).collect();
    let mut renames = Vec::new();
    let mut stamps = HashMap::new();
    let mut asides = BTreeMap::new();
    let mut scratches = Vec::new();
    let mut leaving = Vec::new();
    let folders = Folders::new(ctx.files);
    for finished in group {
        let found = &scan.batches[finished.index];
        let files = publishes(recorder, stage, found, &finished.produced, &folders)?;
        let record = record(recorder, scan, found, &finished)?;
        let replaced = replaced(recorder, stage, &found.batch.key, &files);
        let retired = retire::dropped(recorder, stage, &record.key, &record.outputs)?;
        let whose = (stage.name.as_str(), found.batch.key.as_str());
        leaving.extend(replaced);
        let retiring = retire::leaving(recorder, whose, &retired, Removal::Retired)?;
        leaving.extend(retiring);
        let name = batch_name(&stage.name, &found.batch.key);
        let refs = record.outputs.iter().take(100);
        let refs = refs.map(|made| made.path.to_string()).collect();
        let written = words::count(record.outputs.len() as u64, "file", "files");
        let summary = match (&record.placeholder, record.elements) {
            (Some(outcome), _) => format!("{name} has a placeholder: {outcome}"),
            (None, Some(elements)) => {
                let failed = match record.failed_keys().len() {
                    0 => String::new(),
                    failed => format!(", {failed} failed"),
                };
                let elements = words::count(elements, "element", "elements");
                format!("{name} done: {elements}{failed}, {written}")
            }
            (None, None) => format!("{name} done: {written}"),
        };
        let summary = match &record.job {
            Some(job) => format!("{summary}, {job}, ran for {}", show_duration(finished.took)),
            None => summary,
        };
        let event = Event::Published {
            stage: stage.name.clone(),
            record: Box::new(record),
            files: files.clone(),
            retired: retired.clone(),
        };
        recorder.record_with(EventType::Complete, stage.actor(), event, summary, refs)?;
        asides.extend(retired);
        // One batch of the group may make what another dropped.
        for file in &files {
            asides.remove(&file.path);
            let path = file.path.as_str();
            leaving.retain(|kept: &KeptFile| kept.why == Removal::Replaced || kept.path != path);
        }
        // When the rest is removed.
        for file in &files {
            let stamp = finished.scratch.stamp(&file.path);
            stamps.extend(stamp.map(|stamp| (file.path.clone(), stamp)));
            finished.scratch.published(&file.path);
        }
        renames.extend(files);
        scratches.push(finished.scratch);
    }
    // From here on the batches are finished: after a crash, recovery uses the records.
    recorder.flush()?;
    protect::explain(recorder, &leaving)?;
    let folders = Folders::new(ctx.files);
    publish::rename_into_place(ctx.disk, ctx.layout, &renames, &mut |file| {
        if let Some(written) = stamps.get(&file.path) {
            prove(recorder, &folders, &file.path, written);
        }
    })?;
    retire::move_aside(recorder, &asides, &BTreeSet::new())?;
    recorder.kept.extend(leaving);
    recorder.barrier("everything published is in place")?;
    if stage.refine.is_some() {
        for index in &indices {
            let key = &scan.batches[*index].batch.key;
            iterations::forget(ctx.disk, ctx.layout, &stage.name, key)?;
        }
    }
    // A program that outlived its attempt must not share the folder of the next one.
    let may_be_spared = nothing_strayed();
    for scratch in scratches {
        if may_be_spared {
            scratch.return_to(scratch_pool);
        } else {
            scratch.remove();
        }
    }
    Ok(())
}

/// Moves the outputs of batches back from quarantine, which are up to date then. Returns the number of these batches.
///
/// # Errors
/// When the disk fails. The next run repairs what was recorded.
pub(crate) fn restore(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    found: &mut StageScan,
) -> Result<u64, RunError> {
    let mut events = Vec::new();
    for batch in &mut found.batches {
        if let Ok(Decision::Restore(event)) = &batch.decision {
            let name = batch_name(&stage.name, &batch.batch.key);
            events.push((name, (**event).clone()));
            batch.decision = Ok(Decision::UpToDate);
        }
    }
    let count = events.len() as u64;
    if count == 0 {
        return Ok(count);
    }
    begin::begin(recorder, stage, found, 0)?;
    retire::remove_readers(recorder, &stage.name)?;
    recorder.gather();
    let mut moves = Vec::new();
    for (name, event) in events {
        let files = event.published();
        let outputs = words::count(files.len() as u64, "file", "files");
        let summary = format!("{name} is restored from quarantine: {outputs}");
        let refs = files.iter().take(100).map(|file| file.path.to_string());
        let refs = refs.collect();
        moves.extend(files.iter().cloned());
        recorder.record_with(EventType::Complete, stage.actor(), event, summary, refs)?;
    }
    recorder.flush()?;
    let (disk, layout) = (recorder.ctx.disk, recorder.ctx.layout);
    publish::rename_into_place(disk, layout, &moves, &mut |_| {})?;
    recorder.barrier("everything restored is in place")?;
    for file in &moves {
        quarantine::remove_emptied(disk, layout, &file.scratch)?;
    }
    Ok(count)
}

/// Notes the stamp that proves the content of a file that was just put in place, so that the next up-to-date check need not read it.
fn prove(recorder: &Recorder<'_>, folders: &Folders<'_>, path: &RelPath, written: &FileStamp) {
    let asked = recorder.ctx.asked;
    if asked.is_on()
        && let FoundFile::File(now) = folders.look(&FilePath::workspace(path.clone()))
        && now.proves(written)
    {
        asked.prove(path, now);
    }
}

/// Returns true if the files, their content or the placeholder of a batch differ from its record.
fn differs(recorder: &Recorder<'_>, stage: &Stage, scan: &StageScan, finished: &Finished) -> bool {
    let key = &scan.batches[finished.index].batch.key;
    let known = recorder.state.stages.get(&stage.name);
    let record = known.and_then(|known| known.batches.get(key)?.record.as_ref());
    let Some(record) = record else {
        return true;
    };
    let before = record.outputs.iter();
    let before: BTreeMap<_, _> = before.map(|made| (&made.path, made.digest)).collect();
    let made = finished.produced.files.iter();
    let made: BTreeMap<_, _> = made.map(|(made, _)| (&made.path, made.digest)).collect();
    let produced = &finished.produced;
    before != made
        || record.placeholder.is_some() != produced.placeholder.is_some()
        || record.failed.is_empty() != produced.failed.is_empty()
}

fn publishes(
    recorder: &Recorder<'_>,
    stage: &Stage,
    found: &BatchScan,
    produced: &Produced,
    folders: &Folders<'_>,
) -> Result<Vec<Publish>, RunError> {
    let (layout, state) = (recorder.ctx.layout, (&recorder.state, &recorder.made));
    let whose = (stage.name.as_str(), found.batch.key.as_str());
    let by_hand = |path: &RelPath, digest: Digest| {
        Content::of(layout, state, whose, path, digest).is_by_hand()
    };
    let mut files = Vec::with_capacity(produced.files.len());
    for (made, scratch) in &produced.files {
        let old = old(recorder, folders, &made.path)?;
        let foreign = old.filter(|old| *old != made.digest && by_hand(&made.path, *old));
        let quarantine = foreign.map(|_| recorder.aside("modified", &made.path));
        files.push(Publish {
            scratch: scratch.clone(),
            path: made.path.clone(),
            old,
            new: made.digest,
            quarantine,
            marker: made.name == MARKER,
        });
    }
    Ok(files)
}

/// Returns the files that a person wrote at the paths of a batch. They go to quarantine before the batch's files replace them.
fn replaced(recorder: &Recorder<'_>, stage: &Stage, key: &str, files: &[Publish]) -> Vec<KeptFile> {
    let (layout, state) = (recorder.ctx.layout, (&recorder.state, &recorder.made));
    let (whose, why) = ((stage.name.as_str(), key), Removal::Replaced);
    let of = |file: &Publish| {
        let aside = file.quarantine.as_ref()?;
        let was = Content::of(layout, state, whose, &file.path, file.old?);
        Some(KeptFile::new(whose, (&file.path, aside), why, was))
    };
    // A file that was accepted and then deleted is still in the store of accepted content.
    let known = recorder.state.stages.get(&stage.name);
    let pins = known.and_then(|known| known.batches.get(key)?.record.as_ref()?.pin.as_deref());
    let accepted = pins.iter().flat_map(|pin| &pin.files).filter_map(|file| {
        let is_gone = layout.at(&file.path).symlink_metadata().is_err();
        let paths = (&file.path, &accepted::place(file.to));
        (is_gone && accepted::has(layout, file.to))
            .then(|| KeptFile::new(whose, paths, why, Content::Accepted))
    });
    files.iter().filter_map(of).chain(accepted).collect()
}

/// Returns the digest of the file at a path of the workspace; `None` if there is none, which one system call usually shows.
fn old(
    recorder: &Recorder<'_>,
    folders: &Folders<'_>,
    path: &RelPath,
) -> Result<Option<Digest>, RunError> {
    let file = FilePath::workspace(path.clone());
    if folders.look(&file) == FoundFile::Nothing {
        return Ok(None);
    }
    recorder.ctx.digest(&file).map_err(RunError::World)
}

fn record(
    recorder: &Recorder<'_>,
    scan: &StageScan,
    found: &BatchScan,
    finished: &Finished,
) -> Result<BatchRecord, RunError> {
    let produced = &finished.produced;
    let read =
        dependencies::facts(&recorder.ctx, &found.own, &produced.read).map_err(RunError::World)?;
    let outputs = produced.files.iter().map(|(made, _)| made.clone());
    Ok(BatchRecord {
        key: found.batch.key.clone(),
        shared: scan.shared_id.clone(),
        facts: found.own.with_all(FactKind::Dependency, read),
        outputs: outputs.collect(),
        elements: produced.elements,
        summary: produced.opinion.summary.clone(),
        said: produced.opinion.said.clone(),
        verdict: produced.opinion.verdict,
        placeholder: produced.placeholder.clone().map(Box::new),
        failed: produced.failed.clone(),
        answers: produced.answers.clone(),
        pin: None,
        stale: produced.stale.clone(),
        attempts: finished.attempts,
        spent: finished.spent.map(Box::new),
        duration_ms: u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX),
        run: recorder.run_id().to_owned(),
        job: produced.job.clone().map(Box::new),
    })
}
