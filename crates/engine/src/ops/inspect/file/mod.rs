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
use access::access;
use content::name;
use milepost_core::base::digest::Digest;
use milepost_core::plan::world::World as _;
use milepost_store::store::read;
use serde::Serialize;
use std::io::Read as _;

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
        let (opened, known, place) = self.with_state(|opened, state, _| {
            let known = access(opened, state, path)?;
            let place = shown_place(opened, state, &known.file)?;
            Ok::<_, OpsError>((opened.clone(), known, place))
        })??;
        let ctx = opened.context();
        let digest = ctx.digest(&known.file).map_err(OpsError::World)?;
        let size = place.metadata().ok().filter(std::fs::Metadata::is_file);
        let size = size.map(|found| found.len());
        let output = violations::declared(&opened, &known.file);
        let stream = output.and_then(|output| output.stream.as_ref());
        let content = content::content(&place, &known.file, size, stream, page)
            .map_err(OpsError::unreadable(&known.file))?;
        let check = match (output, size) {
            (Some(output), Some(size)) => violations::check(output, &place, size),
            _ => None,
        };
        Ok(FileView {
            path: known.file.to_string(),
            absolute: place.display().to_string(),
            size,
            digest,
            made: known.made.map(|made| made.with(digest)),
            is_sent: size.is_some_and(|size| size <= LARGEST),
            content,
            check,
        })
    }

    /// Validates a file by the schema that is declared for it, unless it is larger than this many bytes. `None` without a schema.
    ///
    /// # Errors
    /// The errors of [`Live::file`].
    pub fn file_check(&self, path: &str, largest: u64) -> Result<Option<FileCheck>, OpsError> {
        let (opened, file, place) = self.with_state(|opened, state, _| {
            let file = access(opened, state, path)?.file;
            let place = shown_place(opened, state, &file)?;
            Ok::<_, OpsError>((opened.clone(), file, place))
        })??;
        let size = place.metadata().ok().filter(std::fs::Metadata::is_file);
        let size = size
            .map(|found| found.len())
            .filter(|size| *size <= largest);
        let output = violations::declared(&opened, &file);
        Ok(output
            .zip(size)
            .and_then(|(output, size)| violations::check(output, &place, size)))
    }

    /// Returns the bytes of a file that [`Live::file`] shows.
    ///
    /// # Errors
    /// The errors of [`Live::file`], and when it is larger than 32 MiB.
    pub fn raw(&self, path: &str) -> Result<RawFile, OpsError> {
        let (file, place) = self.with_state(|opened, state, _| {
            let file = access(opened, state, path)?.file;
            let place = shown_place(opened, state, &file)?;
            Ok::<_, OpsError>((file, place))
        })??;
        let mut bytes = Vec::new();
        let read =
            read::open(&place).and_then(|open| open.take(LARGEST + 1).read_to_end(&mut bytes));
        read.map_err(OpsError::unreadable(&file))?;
        if bytes.len() as u64 > LARGEST {
            return Err(OpsError::Usage(format!(
                "`{file}` is larger than 32 MiB: open {} instead",
                place.display()
            )));
        }
        Ok(RawFile {
            name: name(&file).to_owned(),
            kind: FileKind::of(name(&file)),
            bytes,
        })
    }
}
