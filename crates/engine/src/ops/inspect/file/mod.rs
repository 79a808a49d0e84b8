//! One file of a workspace, to be shown: what it is, its content or a part of it, and where it violates its schema.

mod access;
mod content;
mod outputs;
mod rows;
mod set_aside;
mod violations;

pub use access::RecordedOutput;
pub(crate) use access::{check_shown, shown_place};
pub use content::{FileContent, FileKind, ShownText};
pub use outputs::{OutputLink, RecordedOutputs};
pub use rows::{FileTable, TableRow};
pub use set_aside::SetAsideFile;
pub use violations::{FileCheck, FileViolation};

use crate::ops::inspect::live::Live;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use access::{KnownFile, access};
use content::name;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::plan::world::World as _;
use milepost_store::store::read;
use serde::Serialize;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is sent whole, in bytes.
const LARGEST: u64 = 32 << 20;

/// A file of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileView {
    /// The path in the workspace, or in the project with the prefix `project:`.
    pub path: String,
    /// The path on this machine.
    pub absolute: String,
    /// The size in bytes; `None` if the file does not exist.
    pub size: Option<u64>,
    /// The present digest.
    pub digest: Option<Digest>,
    /// The recorded output, if it is one.
    pub made: Option<RecordedOutput>,
    /// True if [`Live::raw`] returns it.
    pub is_sent: bool,
    /// The content, or a part of it.
    pub content: FileContent,
    /// The result of its validation; `None` if no schema is declared for it.
    pub check: Option<FileCheck>,
}

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFile {
    /// The name of the file, without folders.
    pub name: String,
    /// The kind of file, by its name.
    pub kind: FileKind,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Live {
    /// Returns a file that the records or declarations of the workspace name, with a page of its rows if it is a table, from 1.
    ///
    /// # Errors
    /// When the path leaves the workspace, the file is private or not of the pipeline, or it cannot be read.
    pub fn file(&self, path: &str, page: u64) -> Result<FileView, OpsError> {
        self.read_at(path, |opened, known, place| {
            let file = &known.file;
            let digest = opened.context().digest(file).map_err(OpsError::World)?;
            let size = place.metadata().ok().filter(std::fs::Metadata::is_file);
            let size = size.map(|found| found.len());
            let output = violations::declared(opened, file);
            let stream = output.and_then(|output| output.stream.as_ref());
            let content = content::content(place, file, size, stream, page)
                .map_err(OpsError::unreadable(file))?;
            let check = match (output, size) {
                (Some(output), Some(size)) => violations::check(output, place, size),
                _ => None,
            };
            Ok(FileView {
                path: file.to_string(),
                absolute: own_place(opened, file, place).display().to_string(),
                size,
                digest,
                made: known.made.as_ref().map(|made| made.with(digest)),
                is_sent: size.is_some_and(|size| size <= LARGEST),
                content,
                check,
            })
        })
    }

    /// Calls `read` with a file that may be shown and the place where it is. Reads again if a run moved it into place meanwhile.
    fn read_at<T>(
        &self,
        path: &str,
        read: impl Fn(&OpenProject, &KnownFile, &Path) -> Result<T, OpsError>,
    ) -> Result<T, OpsError> {
        loop {
            let (opened, known, place) = self.with_state(|opened, state, _| {
                let known = access(opened, state, path)?;
                let place = shown_place(opened, state, &known.file)?;
                Ok::<_, OpsError>((Arc::clone(opened), known, place))
            })??;
            let found = read(&opened, &known, &place);
            let is_moved = || {
                let now = opened.files.resolve(&known.file);
                !place.exists() && now.is_ok_and(|now| now != place && now.exists())
            };
            if !is_moved() {
                return found;
            }
        }
    }

    /// Validates a file by the schema that is declared for it, unless it is larger than this many bytes. `None` without a schema.
    ///
    /// # Errors
    /// The errors of [`Live::file`].
    pub fn file_check(&self, path: &str, largest: u64) -> Result<Option<FileCheck>, OpsError> {
        self.read_at(path, |opened, known, place| {
            let size = place.metadata().ok().filter(std::fs::Metadata::is_file);
            let size = size
                .map(|found| found.len())
                .filter(|size| *size <= largest);
            let output = violations::declared(opened, &known.file);
            Ok(output
                .zip(size)
                .and_then(|(output, size)| violations::check(output, place, size)))
        })
    }

    /// Returns the bytes of a file that [`Live::file`] shows.
    ///
    /// # Errors
    /// The errors of [`Live::file`], and when it is larger than 32 MiB.
    pub fn raw(&self, path: &str) -> Result<RawFile, OpsError> {
        self.read_at(path, |opened, known, place| {
            let file = &known.file;
            let mut bytes = Vec::new();
            let read =
                read::open(place).and_then(|open| open.take(LARGEST + 1).read_to_end(&mut bytes));
            read.map_err(OpsError::unreadable(file))?;
            if bytes.len() as u64 > LARGEST {
                return Err(OpsError::Usage(format!(
                    "`{file}` is larger than 32 MiB: open {} instead",
                    own_place(opened, file, place).display()
                )));
            }
            Ok(RawFile {
                name: name(file).to_owned(),
                kind: FileKind::of(name(file)),
                bytes,
            })
        })
    }
}

/// Returns the place of a file, once it is put in place.
fn own_place(opened: &OpenProject, file: &FilePath, place: &Path) -> PathBuf {
    if opened.files.is_redirected(file) {
        return opened.files.folder(file.root).join(file.path.as_str());
    }
    place.to_owned()
}
