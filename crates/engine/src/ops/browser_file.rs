//! The file that leads a browser to the pages of a server. Every user of the machine can see the arguments of a program, so they do not
//! contain the URL with its token.

use crate::ops::project::error::OpsError;
use crate::ops::project::find::find_project;
use crate::ops::project::open::workspace_of;
use crate::ops::project::request::Request;
use milepost_store::store::disk::Disk;
use milepost_store::store::workspace::Workspace;
use std::path::{Path, PathBuf};

/// A file that only its owner can read, removed when this is dropped.
pub struct BrowserFile {
    disk: Disk,
    path: PathBuf,
}

impl BrowserFile {
    /// Writes the file into the workspace of a request.
    ///
    /// # Errors
    /// When there is no project, or the disk fails.
    pub fn write(request: &Request, html: &str) -> Result<Self, OpsError> {
        let project = find_project(&request.folder)?;
        let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
        workspace.prepare(&request.disk)?;
        let (disk, path) = (request.disk.private(), workspace.layout.browser_file());
        disk.write_swap(&path, html.as_bytes())?;
        Ok(Self { disk, path })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for BrowserFile {
    fn drop(&mut self) {
        // The token in it is of no use any more.
        let _ = self.disk.remove_file(&self.path);
    }
}
