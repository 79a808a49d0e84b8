//! Writes a file of an attempt and hashes it on the way.

use crate::store::disk::DiskFile;
use crate::store::scan::stamp::FileStamp;
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::base::path::RelPath;
use milepost_core::base::source::Sink;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are gathered before they are written. The memory for them grows as they come: most files are small.
pub(super) const GATHERED: usize = 1 << 17;

/// Bytes that are worth gathering at the beginning of a file.
const SMALL: usize = 1 << 10;

/// A file that a sink was opened for.
pub(super) struct Sunk {
    pub(super) file: RelPath,
    /// The content and stamp; `None` until the sink has finished.
    pub(super) written: Option<FinishedFile>,
    /// Whether it has left for its place.
    pub(super) published: bool,
}

/// The content of a file, as digest and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileContent {
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
}

/// A file that a sink finished, with its stamp then.
#[derive(Clone, Copy)]
pub(super) struct FinishedFile {
    pub(super) content: FileContent,
    pub(super) stamp: FileStamp,
}

/// A file of an attempt that is being written.
pub(super) struct HashingSink {
    pub(super) file: RelPath,
    pub(super) path: PathBuf,
    pub(super) open: DiskFile,
    pub(super) buffer: Vec<u8>,
    pub(super) hasher: Hasher,
    pub(super) size: u64,
    pub(super) made: Arc<Mutex<Vec<Sunk>>>,
}

impl HashingSink {
    fn put(&mut self) -> io::Result<()> {
        self.open.write_all(&self.buffer)?;
        self.hasher.update(&self.buffer);
        self.buffer.clear();
        Ok(())
    }
}

impl Write for HashingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > GATHERED {
            self.put()?;
        }
        // A file is often one piece, which needs no copy.
        let is_first = self.size == 0 && bytes.len() >= SMALL;
        let written = if is_first || bytes.len() >= GATHERED {
            let written = self.open.write(bytes)?;
            self.hasher.update(&bytes[..written]);
            written
        } else {
            self.buffer.extend_from_slice(bytes);
            bytes.len()
        };
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put()
    }
}

impl Sink for HashingSink {
    fn path(&self) -> &Path {
        &self.path
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.put()?;
        let stamp = FileStamp::of(&self.open.file().metadata()?);
        let content = FileContent {
            digest: self.hasher.clone().finish(),
            size: self.size,
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sunk) = made.iter_mut().find(|sunk| sunk.file == self.file) {
            sunk.written = Some(FinishedFile { content, stamp });
        }
        Ok(())
    }
}
