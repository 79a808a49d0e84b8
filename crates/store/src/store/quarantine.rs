//! Quarantine: files that a run sets aside and never deletes, in `.milepost/quarantine/RUN-NUMBER-REASON/` under their old paths.

use super::disk::{Disk, DiskError, parent};
use super::id::made_at;
use super::layout::{self, Layout, OWN, safe_name};
use super::read;
use jiff::Timestamp;
use milepost_core::base::path::RelPath;
use milepost_core::model::record::BatchRecord;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The file in each folder of quarantine that gives the reason.
pub const WHY: &str = "WHY.txt";

/// A folder of quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineEntry {
    /// The folder, relative to the workspace.
    pub(crate) folder: RelPath,
    /// The start of the run that set it aside, if the name contains it.
    pub since: Option<Timestamp>,
    /// The number of files in it.
    pub files: u64,
    /// Their size in bytes.
    pub size: u64,
}

/// Returns the folder for the `sequence`th thing that a run sets aside. Different values give different folders.
pub fn folder(run: &str, sequence: u64, reason: &str) -> RelPath {
    let name = format!("{}-{sequence:04}-{}", safe_name(run), safe_name(reason));
    layout::quarantine().with(&RelPath::of_parts([name.as_str()]))
}

/// Returns the first sequence number that no folder of this run has. A resumed run continues there.
pub fn next_sequence(layout: &Layout, run: &str) -> u64 {
    let prefix = format!("{}-", safe_name(run));
    let names = read::names(layout.quarantine()).unwrap_or_default();
    let taken = names.iter().filter_map(|name| {
        let digits = name.strip_prefix(&prefix)?.split('-').next()?;
        digits.parse::<u64>().ok()
    });
    taken.max().map_or(1, |last| last + 1)
}

/// Moves a file durably. Returns false if the file does not exist.
pub fn keep(disk: &Disk, layout: &Layout, from: &RelPath, to: &RelPath) -> Result<bool, DiskError> {
    let (from, to) = (layout.at(from), layout.at(to));
    if !move_aside(disk, &from, &to)? {
        return Ok(false);
    }
    disk.sync_dir(parent(&to))?;
    disk.sync_dir(parent(&from))?;
    Ok(true)
}

/// Copies a file into a folder of quarantine under its own name. A missing file is ignored.
pub fn copy(
    disk: &Disk,
    layout: &Layout,
    from: &RelPath,
    folder: &RelPath,
) -> Result<(), DiskError> {
    let (from, folder) = (layout.at(from), layout.at(folder));
    let Some(name) = from.file_name().filter(|_| from.is_file()) else {
        return Ok(());
    };
    disk.private().create_dir_all(&folder)?;
    let to = folder.join(name);
    disk.private().copy_file(&from, &to)?;
    disk.sync_file(&to)
}

/// Moves a file without flushing the folders.
pub(super) fn move_aside(disk: &Disk, from: &Path, to: &Path) -> Result<bool, DiskError> {
    match std::fs::symlink_metadata(from) {
        Ok(_) => {}
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(false),
        Err(cause) => return Err(DiskError::new("look at", from, cause)),
    }
    disk.private().create_dir_all(parent(to))?;
    disk.rename(from, to)?;
    Ok(true)
}

/// Writes the reason into a folder of quarantine.
pub fn write_reason(
    disk: &Disk,
    layout: &Layout,
    folder: &RelPath,
    why: &str,
) -> Result<(), DiskError> {
    let folder = layout.at(folder);
    let place = folder.join(WHY);
    if place.exists() {
        // Something of this name was set aside, or a run that was killed wrote it.
        return Ok(());
    }
    disk.private().create_dir_all(&folder)?;
    disk.private().write_atomic(&place, why.as_bytes())
}

/// Returns the folder for the outputs of a batch that is retired.
pub fn retired_folder(run: &str, sequence: u64, stage: &str, key: &str) -> RelPath {
    folder(run, sequence, &retired(stage, key))
}

fn retired(stage: &str, key: &str) -> String {
    let name = format!("{stage}-{key}");
    format!("{}-retired", name.trim_end_matches('-'))
}

/// The file in such a folder that holds the record of the batch. No output has this path.
fn record_in(folder: &RelPath) -> RelPath {
    folder.with(&RelPath::of_parts([OWN, "record.json"]))
}

/// Writes the record of a batch into the folder of its outputs, durably, so that they can be restored.
pub fn write_record(
    disk: &Disk,
    layout: &Layout,
    folder: &RelPath,
    batch: (&str, &BatchRecord),
) -> Result<(), DiskError> {
    let place = layout.at(&record_in(folder));
    let bytes = serde_json::to_vec(&batch).map_err(io::Error::from);
    let bytes = bytes.map_err(|cause| DiskError::new("write", &place, cause))?;
    disk.private().create_dir_all(parent(&place))?;
    disk.private().write_atomic(&place, &bytes)
}

/// Removes the folder that a file was restored from, if nothing but the record is left in it.
pub fn remove_emptied(disk: &Disk, layout: &Layout, file: &RelPath) -> Result<(), DiskError> {
    let name = file.as_str().split('/').nth(2);
    let folder = name.map(|name| layout.quarantine().join(name));
    match folder.filter(|folder| weigh(folder).0 == 1) {
        Some(folder) => disk.remove_dir_all(&folder),
        None => Ok(()),
    }
}

/// The folders of quarantine by the ends of their names, in which the records of retired batches are looked up.
pub struct RetiredBatches(HashMap<String, Vec<RelPath>>);

impl RetiredBatches {
    /// Lists the folders. Nothing is restored from a quarantine that cannot be read.
    pub fn list(layout: &Layout) -> Self {
        let mut folders: HashMap<String, Vec<RelPath>> = HashMap::new();
        for name in read::names(layout.quarantine()).unwrap_or_default() {
            if let Some(reason) = name.splitn(3, '-').nth(2) {
                let folder = layout::quarantine().with(&RelPath::of_parts([name.as_str()]));
                folders.entry(reason.to_owned()).or_default().push(folder);
            }
        }
        Self(folders)
    }

    /// Returns the records of a retired batch, each with the folder of its outputs, the newest first.
    pub fn of(
        &self,
        layout: &Layout,
        stage: &str,
        key: &str,
    ) -> impl Iterator<Item = (&RelPath, BatchRecord)> {
        let folders = self.0.get(&safe_name(&retired(stage, key)));
        let folders = folders.into_iter().flatten();
        folders.rev().filter_map(move |folder| {
            let bytes = read::bytes(layout.at(&record_in(folder))).ok()?;
            let (of, record): (String, BatchRecord) = serde_json::from_slice(&bytes).ok()?;
            (of == stage && record.key == key).then_some((folder, record))
        })
    }
}

/// Lists the folders of quarantine, the oldest first.
pub fn list(layout: &Layout) -> Result<Vec<QuarantineEntry>, DiskError> {
    let root = layout.quarantine();
    let fail = |cause| DiskError::new("read", &root, cause);
    let names = read::names(&root).map_err(fail)?;
    let entries = names.iter().map(|name| {
        let (files, size) = weigh(&root.join(name));
        QuarantineEntry {
            folder: layout::quarantine().with(&RelPath::of_parts([name.as_str()])),
            since: made_at(name.split('-').next().unwrap_or_default()),
            files,
            size,
        }
    });
    Ok(entries.collect())
}

/// Files below a folder, or the file itself, and their bytes. What cannot be read counts as nothing.
pub fn weigh(path: &Path) -> (u64, u64) {
    let walk = walkdir::WalkDir::new(path).into_iter().flatten();
    let sizes = walk
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| entry.metadata().map_or(0, |found| found.len()));
    sizes.fold((0, 0), |(files, size), more| (files + 1, size + more))
}
