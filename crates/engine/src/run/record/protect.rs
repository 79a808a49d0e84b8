//! Moves files that a person wrote to quarantine, before a run replaces or removes them.

use crate::run::error::RunError;
use crate::run::record::quarantined::{Content, KeptFile, Removal};
use crate::run::record::recorder::Recorder;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::stage::Stage;
use milepost_core::plan::world::World as _;
use milepost_store::store::disk::DiskError;
use milepost_store::store::files::digest_of;
use milepost_store::store::{checkpoint, layout, progress, quarantine};
use std::collections::BTreeMap;

/// Returns what the file at the path of an output is; `AsMade` if there is none.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn content_at(
    recorder: &Recorder<'_>,
    stage: &str,
    key: &str,
    path: &RelPath,
) -> Result<Content, RunError> {
    let found = recorder.ctx.digest(&FilePath::workspace(path.clone()));
    let found = found.map_err(RunError::World)?;
    let (layout, state) = (recorder.ctx.layout, (&recorder.state, &recorder.made));
    Ok(found.map_or(Content::AsMade, |there| {
        Content::of(layout, state, (stage, key), path, there)
    }))
}

/// Writes a note beside files that were modified by hand and moved to quarantine: it lists them and gives the reason.
///
/// # Errors
/// When the disk fails.
pub(crate) fn explain(recorder: &Recorder<'_>, files: &[KeptFile]) -> Result<(), RunError> {
    let mut notes: BTreeMap<RelPath, String> = BTreeMap::new();
    for file in files.iter().filter(|file| file.was.is_by_hand()) {
        if let Some(folder) = file.folder() {
            let (was, why) = (file.was.words(), file.reason());
            let line = format!(
                "{}: {was}; moved here by run {}: {why}\n",
                file.path,
                recorder.run_id()
            );
            notes.entry(folder).or_default().push_str(&line);
        }
    }
    for (folder, note) in notes {
        quarantine::write_reason(recorder.ctx.disk, recorder.ctx.layout, &folder, &note)?;
    }
    Ok(())
}

/// Removes the file of a checkpoint durably; one that a person modified goes to quarantine. Returns true if it existed.
///
/// # Errors
/// When the disk fails.
pub(crate) fn put_checkpoint_away(
    recorder: &mut Recorder<'_>,
    stage: &str,
    number: u32,
) -> Result<bool, RunError> {
    let ctx = recorder.ctx;
    let path = layout::checkpoint(number);
    let place = ctx.layout.at(&path);
    let there = digest_of(&place).map_err(|error| DiskError::new("read", &place, error))?;
    let Some((there, _)) = there else {
        return Ok(checkpoint::remove(ctx.disk, ctx.layout, number)?);
    };
    let recorded = &recorder.state.checkpoints;
    let is_recorded = recorded.values().any(|digest| *digest == there);
    // A run that was killed may have written it without a record.
    let is_unrecorded =
        !recorded.contains_key(stage) && checkpoint::is_as_written(ctx.layout, number);
    if is_recorded || is_unrecorded {
        return Ok(checkpoint::remove(ctx.disk, ctx.layout, number)?);
    }
    let file = (String::new(), path, Content::Modified);
    put_away(recorder, stage, &[file], Removal::Replaced)?;
    Ok(true)
}

/// Moves the progress file of a stage to quarantine if a person modified it.
///
/// # Errors
/// When the disk fails.
pub(crate) fn put_progress_away(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
) -> Result<(), RunError> {
    let Some(path) = progress_path(stage) else {
        return Ok(());
    };
    if progress::is_by_hand(&recorder.ctx.layout.at(path)) {
        let file = (String::new(), path.clone(), Content::Modified);
        put_away(recorder, &stage.name, &[file], Removal::Replaced)?;
    }
    Ok(())
}

/// A file of a batch that a person wrote: batch, path, content.
pub(crate) type ByHand = (String, RelPath, Content);

/// Moves files that a person wrote to quarantine, durably.
///
/// # Errors
/// When the disk fails.
pub(crate) fn put_away(
    recorder: &mut Recorder<'_>,
    stage: &str,
    files: &[ByHand],
    why: Removal,
) -> Result<(), RunError> {
    let ctx = recorder.ctx;
    let mut moved = Vec::with_capacity(files.len());
    for (batch, path, was) in files {
        let aside = recorder.aside("modified", path);
        moved.push(KeptFile::new((stage, batch), (path, &aside), why, *was));
    }
    explain(recorder, &moved)?;
    for (_, path, _) in files {
        let aside = recorder.aside("modified", path);
        quarantine::keep(ctx.disk, ctx.layout, path, &aside)?;
    }
    recorder.kept.extend(moved);
    Ok(())
}

/// Returns the path of a stage's progress file; `None` for a stage without `each`.
pub(crate) fn progress_path(stage: &Stage) -> Option<&RelPath> {
    (!stage.each.is_empty()).then_some(&stage.progress)
}
