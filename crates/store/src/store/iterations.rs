//! Finished iterations of `[refine]`, saved so that a killed run continues after the last of them.
//!
//! `.milepost/rounds/STAGE/BATCH/N.json` records the files of an attempt at the end of iteration N, and a note. The files are beside
//! it under their digests, and are durable before the record. Each record has the digest of the one before, so leftovers of other
//! attempts are not part of the chain.

use super::disk::{Disk, DiskError, parent};
use super::layout::{self, Layout, safe_name};
use super::publish::{PublishError, flush_group};
use super::scan::files::digest_of;
use super::scratch::{Scratch, ScratchError};
use crate::store::read;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The version of the form of a record.
const FORMAT: u32 = 1;

/// The permissions of a file: read, write and execute, for owner, group and others.
const PERMISSIONS: u32 = 0o777;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedIteration {
    format: u32,
    /// From 1 on.
    pub(crate) number: u32,
    /// The digest of everything that the iteration may depend on.
    fingerprint: Digest,
    /// The record of the iteration before.
    before: Option<Digest>,
    files: Vec<KeptFile>,
    /// Folders of programs, those with nothing in them too.
    folders: Vec<RelPath>,
    /// The note of the caller that saved it.
    pub note: Value,
}

/// A file of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptFile {
    path: RelPath,
    digest: Digest,
    /// The permissions, if a program may have set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
}

/// The saved iterations of one batch.
pub struct SavedIterations {
    disk: Disk,
    layout: Layout,
    folder: RelPath,
    fingerprint: Digest,
    /// Contents that are whole and durable.
    whole: BTreeSet<Digest>,
    /// The last record.
    last: Option<(u32, Digest)>,
}

/// An iteration that cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum IterationError {
    #[error("an iteration cannot be saved: {0}")]
    Disk(#[from] DiskError),
    /// A file cannot be made durable.
    #[error("an iteration cannot be saved: {0}")]
    Flush(#[from] PublishError),
    /// A file of the attempt cannot be read.
    #[error("an iteration cannot be saved: {0}")]
    Scratch(#[from] ScratchError),
    /// The record is not JSON.
    #[error("an iteration cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl SavedIterations {
    /// Creates the saved iterations of a batch under this fingerprint.
    pub fn new(
        disk: &Disk,
        layout: &Layout,
        stage: &str,
        batch: &str,
        fingerprint: Digest,
    ) -> Self {
        Self {
            disk: disk.clone(),
            layout: layout.clone(),
            folder: layout::rounds(stage).with(&RelPath::of_parts([safe_name(batch).as_str()])),
            fingerprint,
            whole: BTreeSet::new(),
            last: None,
        }
    }

    fn inside(&self, name: &str) -> RelPath {
        self.folder.with(&RelPath::of_parts([name]))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.layout.at(&self.inside(name))
    }

    /// Returns the iterations that an earlier attempt finished, in order. If any is missing, damaged or of another fingerprint, all
    /// are removed and the list is empty.
    ///
    /// # Errors
    /// Fails if they cannot be removed.
    pub fn read(&mut self) -> Result<Vec<SavedIteration>, IterationError> {
        let found = self.whole_line();
        if found.is_empty() {
            self.clear()?;
        }
        for (round, digest) in &found {
            self.whole
                .extend(round.files.iter().map(|file| file.digest));
            self.last = Some((round.number, *digest));
        }
        Ok(found.into_iter().map(|(round, _)| round).collect())
    }

    fn whole_line(&self) -> Vec<(SavedIteration, Digest)> {
        let mut line: Vec<(SavedIteration, Digest)> = Vec::new();
        let mut whole = BTreeSet::new();
        for number in 1.. {
            let Ok(bytes) = read::bytes(self.at(&record(number))) else {
                break;
            };
            let Ok(round) = serde_json::from_slice::<SavedIteration>(&bytes) else {
                return Vec::new();
            };
            let follows = round.before == line.last().map(|(_, digest)| *digest);
            let fits = round.format == FORMAT && round.fingerprint == self.fingerprint;
            if !follows || !fits || round.number != number {
                return Vec::new();
            }
            for file in &round.files {
                if whole.insert(file.digest) {
                    let there = digest_of(&self.at(&file.digest.hex()));
                    if !there.is_ok_and(|there| there.is_some_and(|it| it.0 == file.digest)) {
                        return Vec::new();
                    }
                }
            }
            line.push((round, Digest::of(&bytes)));
        }
        line
    }

    /// Saves the files of an attempt durably as the next iteration. Returns false if the attempt contains links or other things
    /// that are not files; then neither this iteration nor a later one is saved.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn keep(
        &mut self,
        scratch: &Scratch,
        number: u32,
        note: Value,
    ) -> Result<bool, IterationError> {
        if self.last.map_or(1, |(last, _)| last + 1) != number {
            return Ok(false);
        }
        let Some((files, folders)) = contents(scratch)? else {
            return Ok(false);
        };
        let folder = self.layout.at(&self.folder);
        self.disk.create_dir_all(&folder)?;
        let mut fresh = Vec::new();
        for file in &files {
            if self.whole.insert(file.digest) {
                let name = file.digest.hex();
                self.disk
                    .copy_file(&scratch.at(&file.path), &folder.join(&name))?;
                fresh.push(self.inside(&name));
            }
        }
        flush_group(&self.disk, &self.layout, &fresh)?;
        let round = SavedIteration {
            format: FORMAT,
            number,
            fingerprint: self.fingerprint,
            before: self.last.map(|(_, digest)| digest),
            files,
            folders,
            note,
        };
        let bytes = serde_json::to_vec(&round)?;
        self.disk
            .write_atomic(&folder.join(record(number)), &bytes)?;
        self.last = Some((number, Digest::of(&bytes)));
        Ok(true)
    }

    /// Restores the files of an iteration into an empty attempt.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn restore(&self, round: &SavedIteration, scratch: &Scratch) -> Result<(), IterationError> {
        for folder in &round.folders {
            // The file is not made: only the folder that it would lie in.
            scratch.make_folder_of(&folder.with(&RelPath::of_parts(["x"])))?;
        }
        for file in &round.files {
            let from = self.at(&file.digest.hex());
            let mut kept = read::open(&from).map_err(DiskError::reading(&from))?;
            let path = scratch.at(&file.path);
            let failed = DiskError::reading(&path);
            let mut sink = scratch.sink(&file.path)?;
            io::copy(&mut kept, &mut sink).map_err(&failed)?;
            sink.finish().map_err(&failed)?;
            if let Some(mode) = file.mode {
                let there = path.metadata().map_err(failed)?;
                if there.permissions().mode() & PERMISSIONS != mode {
                    self.disk.set_mode(&path, mode)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes of a saved file.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn content(&self, digest: Digest) -> Result<Vec<u8>, IterationError> {
        let path = self.at(&digest.hex());
        Ok(read::bytes(&path).map_err(DiskError::reading(&path))?)
    }

    /// Removes all saved iterations of the batch durably.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn clear(&mut self) -> Result<(), IterationError> {
        self.whole.clear();
        self.last = None;
        remove(&self.disk, &self.layout, &self.folder)?;
        Ok(())
    }
}

fn record(number: u32) -> String {
    format!("{number}.json")
}

/// Everything that lies in an attempt, and its folders; none when something is neither a file nor a folder.
#[expect(clippy::type_complexity)]
fn contents(scratch: &Scratch) -> Result<Option<(Vec<KeptFile>, Vec<RelPath>)>, IterationError> {
    let (mut paths, mut folders) = (Vec::new(), Vec::new());
    if scratch.is_folder() {
        let walk = walkdir::WalkDir::new(scratch.path()).min_depth(1);
        for entry in walk.sort_by_file_name() {
            let failed = DiskError::reading(scratch.path());
            let read = |error: walkdir::Error| failed(error.into());
            let entry = entry.map_err(read)?;
            let found = entry.metadata().map_err(read)?;
            let inside = entry.path().strip_prefix(scratch.path());
            let inside = inside.ok().and_then(Path::to_str);
            let Some(inside) = inside.and_then(|inside| RelPath::parse(inside).ok()) else {
                return Ok(None);
            };
            if found.is_dir() {
                folders.push(inside);
            } else if found.is_file() {
                paths.push((inside, Some(found.permissions().mode() & PERMISSIONS)));
            } else {
                return Ok(None);
            }
        }
    } else {
        paths.extend(scratch.files().into_iter().map(|path| (path, None)));
    }
    let mut files = Vec::with_capacity(paths.len());
    for (path, mode) in paths {
        // A program that was left behind may have taken it away.
        let Some(content) = scratch.content(&path)? else {
            return Ok(None);
        };
        files.push(KeptFile {
            path,
            digest: content.digest,
            mode,
        });
    }
    Ok(Some((files, folders)))
}

fn remove(disk: &Disk, layout: &Layout, folder: &RelPath) -> Result<(), DiskError> {
    let path = layout.at(folder);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    disk.remove_dir_all(&path)?;
    disk.sync_dir(parent(&path))
}

/// Removes the saved iterations of a batch.
///
/// # Errors
/// Fails if the disk fails.
pub fn forget(disk: &Disk, layout: &Layout, stage: &str, batch: &str) -> Result<(), DiskError> {
    let batch = RelPath::of_parts([safe_name(batch).as_str()]);
    remove(disk, layout, &layout::rounds(stage).with(&batch))
}

/// Removes the saved iterations of a stage's batches, except those with these keys.
///
/// # Errors
/// Fails if the disk fails.
pub fn remove_except<'a>(
    disk: &Disk,
    layout: &Layout,
    stage: &str,
    batches: impl Iterator<Item = &'a str>,
) -> Result<(), DiskError> {
    let folder = layout::rounds(stage);
    let there = names(&layout.at(&folder))?;
    if there.is_empty() {
        return Ok(());
    }
    let live: BTreeSet<String> = batches.map(safe_name).collect();
    for name in there.iter().filter(|name| !live.contains(*name)) {
        let gone = RelPath::of_parts([name.as_str()]);
        remove(disk, layout, &folder.with(&gone))?;
    }
    Ok(())
}

/// Removes the saved iterations of all stages except these.
///
/// # Errors
/// Fails if the disk fails.
pub fn remove_stages_except<'a>(
    disk: &Disk,
    layout: &Layout,
    stages: impl Iterator<Item = &'a str>,
) -> Result<(), DiskError> {
    let root = layout.own().join(layout::ROUNDS);
    let there = names(&root)?;
    if there.is_empty() {
        return Ok(());
    }
    let live: BTreeSet<RelPath> = stages.map(layout::rounds).collect();
    for name in there {
        let folder = RelPath::of_parts([layout::OWN, layout::ROUNDS, name.as_str()]);
        if !live.contains(&folder) {
            remove(disk, layout, &folder)?;
        }
    }
    Ok(())
}

/// Returns the names in a folder; none if there is no folder.
fn names(folder: &Path) -> Result<Vec<String>, DiskError> {
    read::names(folder).map_err(|cause| DiskError::new("read", folder, cause))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests damage files by hand")]
mod tests;
