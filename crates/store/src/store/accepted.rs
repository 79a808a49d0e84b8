//! Copies of modified outputs that a person accepted, in `.milepost/accepted`, by their digests.

use super::disk::{Disk, DiskError, parent};
use super::layout::{self, Layout};
use super::read;
use super::scan::files::digest_of;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use std::collections::BTreeSet;

/// A copy in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcceptedCopy {
    /// Where it lies, in the workspace.
    pub(crate) path: RelPath,
    /// The size in bytes.
    pub(crate) size: u64,
}

/// Content that could not be copied into the store.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file has other bytes than those that were validated.
    #[error("`{path}` changed while it was being accepted: accept it again")]
    Changed {
        /// The file, in the workspace.
        path: RelPath,
    },
}

/// Returns the path of the copy with this digest, `.milepost/accepted/ab/abcdef…`, relative to the workspace.
pub fn place(digest: Digest) -> RelPath {
    let hex = digest.hex();
    layout::accepted().with(&RelPath::of_parts([&hex[..2], hex.as_str()]))
}

/// Returns true if there is a copy with this digest.
pub fn has(layout: &Layout, digest: Digest) -> bool {
    layout.at(&place(digest)).is_file()
}

/// Copies a file durably, unless there is a copy with its digest already.
///
/// # Errors
/// Fails if the file does not have this digest, or the disk fails.
pub fn keep(
    disk: &Disk,
    layout: &Layout,
    path: &RelPath,
    digest: Digest,
) -> Result<(), AcceptedError> {
    let to = layout.at(&place(digest));
    let digest_at = |file: &std::path::Path| {
        let found = digest_of(file).map_err(|error| DiskError::new("read", file, error))?;
        Ok::<_, DiskError>(found.map(|(digest, _)| digest))
    };
    if digest_at(&to)? != Some(digest) {
        let folder = parent(&to);
        disk.create_dir_all(folder)?;
        let beside = folder.join(format!(".{}.tmp", digest.hex()));
        disk.copy_file(&layout.at(path), &beside)?;
        if digest_at(&beside)? != Some(digest) {
            disk.remove_file(&beside)?;
            return Err(AcceptedError::Changed { path: path.clone() });
        }
        disk.sync_file(&beside)?;
        disk.rename(&beside, &to)?;
    }
    // A run that was killed may have renamed it and not flushed the folder.
    disk.sync_dir(parent(&to))?;
    Ok(())
}

/// Returns the copies that were written before `before` and whose digest is not among `in_use`, by path.
///
/// # Errors
/// When a folder of the store cannot be read.
pub(crate) fn unused(
    layout: &Layout,
    before: Timestamp,
    in_use: &BTreeSet<Digest>,
) -> Result<Vec<AcceptedCopy>, DiskError> {
    let mut found = Vec::new();
    for folder in entries(&layout.at(&layout::accepted()))? {
        for file in entries(&folder)? {
            let name = file.file_name().and_then(|name| name.to_str());
            let Some(digest) = name.and_then(|name| Digest::from_hex(name).ok()) else {
                continue;
            };
            let data = file.metadata();
            let data = data.map_err(|error| DiskError::new("look at", &file, error))?;
            let written = data.modified().ok();
            let written = written.and_then(|time| Timestamp::try_from(time).ok());
            if !in_use.contains(&digest) && written.is_some_and(|at| at < before) {
                found.push(AcceptedCopy {
                    path: place(digest),
                    size: data.len(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns the paths in a folder; none if there is no folder.
fn entries(folder: &std::path::Path) -> Result<Vec<std::path::PathBuf>, DiskError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let names = read::names(folder).map_err(|cause| DiskError::new("read", folder, cause))?;
    Ok(names.iter().map(|name| folder.join(name)).collect())
}
