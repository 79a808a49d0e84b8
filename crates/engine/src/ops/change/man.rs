//! Writes man pages to a folder.

use crate::ops::project::error::OpsError;
use milepost_store::store::disk::Disk;
use serde::Serialize;
use std::path::Path;

/// Man pages that were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManPages {
    /// The folder.
    pub folder: String,
    /// The names of the files in it.
    pub files: Vec<String>,
}

/// Writes pages, each with the name of its file, over older ones. The folder is created if it does not exist.
///
/// # Errors
/// When the disk fails.
pub fn write_man_pages(
    disk: &Disk,
    folder: &Path,
    pages: &[(String, Vec<u8>)],
) -> Result<ManPages, OpsError> {
    disk.create_dir_all(folder)?;
    for (name, page) in pages {
        disk.write_atomic(&folder.join(name), page)?;
    }
    Ok(ManPages {
        folder: folder.display().to_string(),
        files: pages.iter().map(|(name, _)| name.clone()).collect(),
    })
}
