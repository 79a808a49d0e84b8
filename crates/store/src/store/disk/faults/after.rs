//! The disk after a power failure: a folder is made to hold what survived.

#![allow(
    clippy::disallowed_methods,
    reason = "part of the one writer of the disk"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file or folder that survives a power failure.
pub(super) enum Survivor {
    Folder,
    File(Vec<u8>),
}

/// Makes a folder hold just these paths. Only what differs is touched, so that times and inodes of the rest stay.
pub(super) fn put(root: &Path, kept: &BTreeMap<PathBuf, Survivor>) {
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match kept.get(&path) {
                Some(Survivor::Folder) if is_folder => open.push(path),
                Some(Survivor::File(bytes)) if !is_folder => {
                    if fs::read(&path).ok().as_ref() != Some(bytes) {
                        // Another name of it, a link, is left as it is.
                        let _ = fs::remove_file(&path);
                    }
                }
                _ if is_folder => {
                    let _ = fs::remove_dir_all(&path);
                }
                _ => {
                    let _ = fs::remove_file(&path);
                }
            }
        }
    }
    for (path, kept) in kept {
        match kept {
            Survivor::Folder if !path.exists() => {
                let _ = fs::create_dir(path);
            }
            Survivor::File(bytes) if !path.exists() => {
                let _ = fs::write(path, bytes);
            }
            _ => {}
        }
    }
}
