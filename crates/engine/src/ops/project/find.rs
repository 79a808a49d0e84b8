//! Finds a project's folder and reads its declarations.

use super::error::OpsError;
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::decl::{self, ProjectFiles, Warning};
use milepost_core::model::pipeline::Pipeline;
use milepost_store::store::files::{FileError, Files};
use milepost_store::store::read;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name of the file that makes a folder a project.
pub const PROJECT_FILE: &str = decl::PROJECT_FILE;

/// Reads a project's files from the disk, and hashes what was read.
pub(crate) struct OnDisk {
    root: PathBuf,
    files: Files,
    read: Mutex<Hasher>,
}

impl OnDisk {
    /// Starts with nothing read.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: Files::new(root, root),
            read: Mutex::default(),
        }
    }

    /// Returns the digest of everything read and listed so far, in order.
    pub(crate) fn digest(&self) -> Digest {
        self.read().clone().finish()
    }

    fn read(&self) -> MutexGuard<'_, Hasher> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProjectFiles for OnDisk {
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>> {
        let source = match self.files.source(&FilePath::project(path.clone())) {
            Ok(source) => source,
            Err(error) => {
                self.read().update(format!("read {path} {error}\n"));
                return match error {
                    FileError::Missing { .. } => None,
                    error => Some(Err(error.to_string())),
                };
            }
        };
        let found = read::bytes(source.path()).map_err(|error| error.to_string());
        let said = match &found {
            Ok(bytes) => format!("read {path} {}\n", Digest::of(bytes)),
            Err(error) => format!("read {path} {error}\n"),
        };
        self.read().update(said);
        Some(found)
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let mut names = read::names(self.root.join(folder)).unwrap_or_default();
        names.retain(|name| !name.starts_with('.'));
        self.read()
            .update(format!("list {folder} {}\n", json!(names)));
        names
    }
}

/// Returns the names of a project's stages by their file names, in order; empty if there is no project.
pub fn stage_names(folder: &Path) -> Vec<String> {
    let Ok(project) = find_project(folder) else {
        return Vec::new();
    };
    decl::stage_names(&OnDisk::new(&project))
}

/// Returns the folder with `milepost.toml`: this one or the nearest above.
///
/// # Errors
/// When there is none.
pub(crate) fn find_project(folder: &Path) -> Result<PathBuf, OpsError> {
    let shown = folder.display();
    let from = folder.canonicalize().map_err(|error| {
        OpsError::Usage(match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no folder `{shown}`"),
            _ => format!("`{shown}` cannot be opened: {error}"),
        })
    })?;
    let found = from
        .ancestors()
        .find(|folder| folder.join(PROJECT_FILE).is_file());
    let found = found.ok_or_else(|| OpsError::NoProject(folder.display().to_string()))?;
    // Programs get paths below it as text.
    if found.to_str().is_none() {
        return Err(OpsError::Usage(format!(
            "the path of the project is not UTF-8: `{}`: rename its folder, or move the project",
            found.as_os_str().as_encoded_bytes().escape_ascii()
        )));
    }
    Ok(found.to_owned())
}

/// Reads the declarations of the project in a folder.
///
/// # Errors
/// When they are wrong: all mistakes at once.
pub fn declarations(project: &Path) -> Result<(Pipeline, Vec<Warning>), OpsError> {
    decl::load(&OnDisk::new(project)).map_err(|problems| OpsError::Declarations(Box::new(problems)))
}
