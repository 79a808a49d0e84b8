//! Files that a run moves to quarantine: what each of them is, why it moved, and the note beside it that says so.

use super::engine::RunError;
use super::finish;
use super::keeper::Keeper;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::BatchState;
use milepost_core::plan::world::World as _;
use milepost_store::store::disk::DiskError;
use milepost_store::store::files::digest_of;
use milepost_store::store::layout::Layout;
use milepost_store::store::{accepted, checkpoint, layout, progress, quarantine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A file that was moved to quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KeptFile {
    /// The stage; empty for an input.
    pub stage: String,
    /// The batch; empty for the only one of the stage, a checkpoint and an input.
    pub batch: String,
    /// Where it was, in the workspace.
    pub path: String,
    /// Where it is now, in the workspace.
    pub quarantine: String,
    /// Why it was moved.
    pub why: Removal,
    /// What it is.
    pub was: Content,
}

/// Why a file was moved to quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Other bytes took its place.
    Replaced,
    /// Its batch does not make it any more.
    Retired,
    /// Its batch failed: it is not what the batch would make.
    Failed,
    /// `milepost clean` removed it.
    Cleaned,
}

/// What a file at an output's path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// What Milepost wrote.
    AsMade,
    /// Modified by hand, and not accepted.
    Modified,
    /// Modified by hand, and accepted.
    Accepted,
    /// A file that Milepost did not make.
    Untracked,
}

impl Content {
    /// Returns what a file with this digest is, by what is recorded of the batch that makes it.
    pub fn of(layout: &Layout, known: Option<&BatchState>, path: &RelPath, there: Digest) -> Self {
        let Some(known) = known else {
            return Self::Untracked;
        };
        let record = known.record.as_ref();
        let made = record.and_then(|record| record.outputs.iter().find(|made| made.path == *path));
        let by_hand = record.is_some_and(|record| record.is_by_hand(path));
        match (made, known.remains.get(path)) {
            (Some(made), _) if made.digest == there && by_hand => Self::Accepted,
            (Some(made), _) if made.digest == there => Self::AsMade,
            (_, Some(ours)) if *ours == there => {
                if accepted::has(layout, there) {
                    Self::Accepted
                } else {
                    Self::AsMade
                }
            }
            (None, None) => Self::Untracked,
            _ => Self::Modified,
        }
    }

    /// Returns the same for what lies at a path; `AsMade` if nothing does.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn at(
        keeper: &Keeper<'_>,
        stage: &str,
        key: &str,
        path: &RelPath,
    ) -> Result<Self, RunError> {
        let found = keeper.ctx.digest(&FilePath::workspace(path.clone()));
        let found = found.map_err(RunError::World)?;
        let known = keeper.state.stages.get(stage);
        let known = known.and_then(|known| known.batches.get(key));
        Ok(found.map_or(Self::AsMade, |there| {
            Self::of(keeper.ctx.layout, known, path, there)
        }))
    }

    /// Returns true if a person wrote these bytes.
    pub fn is_by_hand(self) -> bool {
        self != Self::AsMade
    }

    /// Returns what it is, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::AsMade => "as Milepost wrote it",
            Self::Modified => "modified by hand",
            Self::Accepted => "modified by hand and accepted",
            Self::Untracked => "not written by Milepost",
        }
    }
}

impl KeptFile {
    /// A file on its way to quarantine.
    pub fn new(
        (stage, batch): (&str, &str),
        (path, quarantine): (&RelPath, &RelPath),
        why: Removal,
        was: Content,
    ) -> Self {
        Self {
            stage: stage.to_owned(),
            batch: batch.to_owned(),
            path: path.to_string(),
            quarantine: quarantine.to_string(),
            why,
            was,
        }
    }

    /// Returns the folder of quarantine that it is moved to.
    fn folder(&self) -> Option<RelPath> {
        let folder = self.quarantine.strip_suffix(&self.path)?;
        RelPath::parse(folder.trim_end_matches('/')).ok()
    }

    /// Returns why it was moved, for people.
    pub fn reason(&self) -> &'static str {
        match self.why {
            Removal::Replaced => "replaced",
            Removal::Retired => "no longer made",
            Removal::Failed => "its batch failed",
            Removal::Cleaned => "removed by `milepost clean`",
        }
    }
}

/// Writes beside files on their way to quarantine what they are and why they are moved, where one of them is a person's.
///
/// # Errors
/// When the disk fails.
pub fn explain(keeper: &Keeper<'_>, files: &[KeptFile]) -> Result<(), RunError> {
    let mut notes: BTreeMap<RelPath, String> = BTreeMap::new();
    for file in files.iter().filter(|file| file.was.is_by_hand()) {
        if let Some(folder) = file.folder() {
            let (was, why) = (file.was.words(), file.reason());
            let line = format!(
                "{}: {was}; moved here by run {}: {why}\n",
                file.path,
                keeper.run_id()
            );
            notes.entry(folder).or_default().push_str(&line);
        }
    }
    for (folder, note) in notes {
        quarantine::say_why(keeper.ctx.disk, keeper.ctx.layout, &folder, &note)?;
    }
    Ok(())
}

/// Removes the file of a checkpoint, durably; one that a person modified goes to quarantine. Returns whether it was there.
///
/// # Errors
/// When the disk fails.
pub fn put_checkpoint_away(
    keeper: &mut Keeper<'_>,
    stage: &str,
    number: u32,
) -> Result<bool, RunError> {
    let ctx = keeper.ctx;
    let path = layout::checkpoint(number);
    let place = ctx.layout.at(&path);
    let there = digest_of(&place).map_err(|error| DiskError::new("read", &place, error))?;
    let Some((there, _)) = there else {
        return Ok(checkpoint::remove(ctx.disk, ctx.layout, number)?);
    };
    let recorded = &keeper.state.checkpoints;
    let is_recorded = recorded.values().any(|digest| *digest == there);
    // A run that was killed may have written it and not recorded it.
    let is_untold = !recorded.contains_key(stage) && checkpoint::is_as_written(ctx.layout, number);
    if is_recorded || is_untold {
        return Ok(checkpoint::remove(ctx.disk, ctx.layout, number)?);
    }
    let file = (String::new(), path, Content::Modified);
    put_away(keeper, stage, &[file], Removal::Replaced)?;
    Ok(true)
}

/// Moves what a person made of a stage's progress file to quarantine.
///
/// # Errors
/// When the disk fails.
pub fn put_progress_away(keeper: &mut Keeper<'_>, stage: &Stage) -> Result<(), RunError> {
    let Some(path) = finish::progress_path(stage) else {
        return Ok(());
    };
    if progress::is_by_hand(&keeper.ctx.layout.at(path)) {
        let file = (String::new(), path.clone(), Content::Modified);
        put_away(keeper, &stage.name, &[file], Removal::Replaced)?;
    }
    Ok(())
}

/// An output or another file of a batch that a person wrote: the batch, the path, what it is.
pub type ByHand = (String, RelPath, Content);

/// Moves files that a person wrote to quarantine, durably.
///
/// # Errors
/// When the disk fails.
pub fn put_away(
    keeper: &mut Keeper<'_>,
    stage: &str,
    files: &[ByHand],
    why: Removal,
) -> Result<(), RunError> {
    let ctx = keeper.ctx;
    let mut moved = Vec::with_capacity(files.len());
    for (batch, path, was) in files {
        let aside = keeper.aside("modified", path);
        moved.push(KeptFile::new((stage, batch), (path, &aside), why, *was));
    }
    explain(keeper, &moved)?;
    for (_, path, _) in files {
        quarantine::keep(ctx.disk, ctx.layout, path, &keeper.aside("modified", path))?;
    }
    keeper.kept.extend(moved);
    Ok(())
}
