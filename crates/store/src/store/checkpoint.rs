//! Checkpoints on the disk: `stage_N_complete.json`, written whole and removed durably.

use super::disk::{Disk, DiskError, parent};
use super::layout::Layout;
use crate::store::read;
use milepost_core::base::digest::Digest;
use milepost_core::base::reserved::checkpoint_number;
use milepost_core::model::checkpoint::{Checkpoint, FORMAT};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

/// A checkpoint that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A newer Milepost wrote it.
    #[error(
        "{path} is written by a newer Milepost (format {format}; this one reads up to {FORMAT}): update milepost"
    )]
    Newer { path: PathBuf, format: u64 },
    /// The text is not a valid checkpoint.
    #[error("{path} is not a checkpoint: {problem}. Remove it and run again to rebuild it")]
    Damaged { path: PathBuf, problem: String },
    /// It could not be written as JSON.
    #[error("a checkpoint cannot be written: {0}")]
    Record(#[from] serde_json::Error),
}

/// A checkpoint read from the disk.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundCheckpoint {
    pub checkpoint: Checkpoint,
    /// The digest of the file. If it differs from the digest in the journal, the file was edited.
    pub digest: Digest,
}

/// Returns the bytes of a checkpoint's file.
pub fn bytes(checkpoint: &Checkpoint) -> Result<Vec<u8>, CheckpointError> {
    let mut bytes = serde_json::to_vec_pretty(checkpoint)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes a checkpoint atomically and durably, and returns the digest of the file.
pub fn write(
    disk: &Disk,
    layout: &Layout,
    checkpoint: &Checkpoint,
) -> Result<Digest, CheckpointError> {
    let bytes = bytes(checkpoint)?;
    disk.write_atomic(&layout.checkpoint(checkpoint.number), &bytes)?;
    Ok(Digest::of(bytes))
}

/// Reads the checkpoint of the stage with this number; `None` if there is none.
pub fn read(layout: &Layout, number: u32) -> Result<Option<FoundCheckpoint>, CheckpointError> {
    let path = layout.checkpoint(number);
    let bytes = match read::bytes(&path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(DiskError::new("read", &path, cause).into()),
    };
    let damaged = |problem: &dyn std::fmt::Display| CheckpointError::Damaged {
        path: path.clone(),
        problem: problem.to_string(),
    };
    let digest = Digest::of(&bytes);
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| damaged(&error))?;
    let format = value["format"].as_u64().unwrap_or_default();
    if format > u64::from(FORMAT) {
        return Err(CheckpointError::Newer { path, format });
    }
    let checkpoint: Checkpoint = serde_json::from_value(value).map_err(|error| damaged(&error))?;
    if checkpoint.number != number {
        let problem = format!("it is of stage number {}", checkpoint.number);
        return Err(damaged(&problem));
    }
    Ok(Some(FoundCheckpoint { checkpoint, digest }))
}

/// Returns true if the file of a checkpoint has exactly the bytes that Milepost writes.
pub fn is_as_written(layout: &Layout, number: u32) -> bool {
    let there = read::bytes(layout.checkpoint(number)).ok();
    let found = read(layout, number).ok().flatten();
    found.and_then(|found| bytes(&found.checkpoint).ok()) == there && there.is_some()
}

/// Removes a checkpoint durably. Returns true if it existed.
pub fn remove(disk: &Disk, layout: &Layout, number: u32) -> Result<bool, CheckpointError> {
    let path = layout.checkpoint(number);
    let was_there = path.symlink_metadata().is_ok();
    if was_there {
        disk.remove_file(&path)?;
        disk.sync_dir(parent(&path))?;
    }
    Ok(was_there)
}

/// Returns the numbers of the checkpoints in a workspace.
pub fn numbers(layout: &Layout) -> Result<Vec<u32>, CheckpointError> {
    let names = read::names(layout.root()).map_err(DiskError::reading(layout.root()))?;
    let numbers = names.iter().filter_map(|name| checkpoint_number(name));
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads all checkpoints of a workspace, by number. One that cannot be read has its error.
#[allow(clippy::type_complexity)]
pub fn list(
    layout: &Layout,
) -> Result<BTreeMap<u32, Result<FoundCheckpoint, CheckpointError>>, CheckpointError> {
    let mut all = BTreeMap::new();
    for number in numbers(layout)? {
        if let Some(found) = read(layout, number).transpose() {
            all.insert(number, found);
        }
    }
    Ok(all)
}
