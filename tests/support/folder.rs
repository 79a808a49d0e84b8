//! Temporary folders, and the files in a folder.

use super::Files;
use std::path::Path;

/// A folder that is removed when it is dropped; in memory where the system has a place for that, so that no test waits for a disk.
pub fn temporary() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("milepost-test-");
    let folder = builder.tempdir_in("/dev/shm");
    folder.unwrap_or_else(|_| builder.tempdir().unwrap())
}

/// The files below a folder, by their paths in it, without those that a filter leaves out.
pub fn files_below(root: &Path, is_read: impl Fn(&Path) -> bool) -> Files {
    let all = walkdir::WalkDir::new(root).into_iter();
    all.filter_entry(|entry| is_read(entry.path()))
        .filter_map(Result::ok)
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| {
            let path = entry.path().strip_prefix(root).unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            (path.to_string_lossy().into_owned(), bytes)
        })
        .collect()
}
