//! Operations that the system refused, with what the user can do.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// An operation on the disk that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {}", explain(.path, .action, .source))]
pub struct DiskError {
    /// The file or folder.
    pub(crate) path: PathBuf,
    /// The operation, such as `write`, `rename`, `flush`.
    pub(crate) action: &'static str,
    pub(crate) source: io::Error,
}

impl DiskError {
    /// Creates an error that reads `cannot {action} {path}: …`.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            action,
            source,
        }
    }

    /// Returns the errors of a file or folder that cannot be read.
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::new("read", &path, source)
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> io::Error {
        io::Error::new(error.source.kind(), error)
    }
}

pub(super) fn error(path: &Path, action: &'static str, source: io::Error) -> DiskError {
    DiskError::new(action, path, source)
}

/// Returns an error of writing a file; of a full disk, it says which one, because callers know only the name of the output.
pub(super) fn full(path: &Path, cause: io::Error) -> io::Error {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            io::Error::new(cause.kind(), explain(path, "write", &cause))
        }
        _ => cause,
    }
}

/// Returns what an error of the system means and what to do.
fn explain(path: &Path, action: &str, cause: &io::Error) -> String {
    let folder = parent(path).display();
    match cause.kind() {
        io::ErrorKind::StorageFull => {
            format!("no space left on {folder}: free space, then run again to continue")
        }
        io::ErrorKind::QuotaExceeded => {
            format!("the quota of {folder} is used up: free space, then run again to continue")
        }
        io::ErrorKind::PermissionDenied if action == "read" => "no permission to read it".to_owned(),
        io::ErrorKind::PermissionDenied if action == "empty" => {
            "another user owns it: remove it as that user".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            format!("no permission to write in {folder}: check the folder's owner")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("the file system of {folder} is read-only")
        }
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::NotADirectory => "expected a folder, found a file".to_owned(),
        io::ErrorKind::IsADirectory => "expected a file, found a folder".to_owned(),
        io::ErrorKind::CrossesDevices => {
            "both paths must be on one file system: `.milepost` and the outputs cannot be mounted apart"
                .to_owned()
        }
        _ if cause.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            "it is a symbolic link, and Milepost does not write through links: remove it".to_owned()
        }
        _ => cause.to_string(),
    }
}

/// Returns the folder of an entry.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_a_refusal_means() {
        let full = DiskError {
            path: "w/x".into(),
            action: "write",
            source: io::ErrorKind::StorageFull.into(),
        };
        assert_eq!(
            full.to_string(),
            "cannot write w/x: no space left on w: free space, then run again to continue"
        );
        let denied = explain(
            Path::new("w/x"),
            "write",
            &io::ErrorKind::PermissionDenied.into(),
        );
        assert_eq!(
            denied,
            "no permission to write in w: check the folder's owner"
        );
    }
}
