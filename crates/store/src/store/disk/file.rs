//! A file that is being written.

use super::Fill;
use super::faults::Faults;
use super::refusal::{DiskError, error, full};
use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are written at once.
const BUFFER: usize = 64 << 10;

/// A file being written.
pub struct DiskFile {
    faults: Arc<Faults>,
    file: File,
    path: PathBuf,
}

impl DiskFile {
    pub(super) fn new(faults: Arc<Faults>, file: File, path: PathBuf) -> Self {
        Self { faults, file, path }
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open file, to be read or locked.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns its size in bytes.
    pub(crate) fn size(&self) -> Result<u64, DiskError> {
        let found = self.file.metadata();
        found
            .map(|found| found.len())
            .map_err(|cause| error(&self.path, "look at", cause))
    }

    /// Returns the number of its hard links; `None` if another file took its path since it was opened.
    pub(crate) fn links(&self) -> Option<u64> {
        let own = self.file.metadata().ok()?;
        let there = std::fs::symlink_metadata(&self.path).ok()?;
        let is_there = (own.dev(), own.ino()) == (there.dev(), there.ino());
        is_there.then(|| own.nlink())
    }

    /// Removes the read permission of users without write permission, because a reader can lock the file. Only the owner can do so.
    pub(crate) fn close_to_readers(&self) {
        let Ok(found) = self.file.metadata() else {
            return;
        };
        let mode = found.mode();
        let closed = (mode & !0o044) | ((mode & 0o022) << 1);
        if closed != mode {
            let _step = self.faults.step("set permissions of", &self.path);
            let _ = self.file.set_permissions(Permissions::from_mode(closed));
        }
    }

    /// Writes all bytes.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_all(bytes)
            .map_err(|cause| error(&self.path, "write", cause))
    }

    /// Writes what `fill` writes, in large pieces.
    pub(crate) fn fill(&mut self, fill: impl Fill) -> Result<(), DiskError> {
        let mut out = BufWriter::with_capacity(BUFFER, &mut *self);
        let filled = fill(&mut out).and_then(|()| out.flush());
        // After a failure, drop the buffer: `BufWriter` would write it when dropped.
        let _ = out.into_parts();
        filled.map_err(|cause| error(&self.path, "write", cause))
    }

    /// Flushes the bytes, and only the metadata that reading them needs (`fdatasync`).
    pub(crate) fn flush_data(&self) -> Result<(), DiskError> {
        let step = self.faults.step_flush(&self.path);
        if step.is_wanted() {
            let flushed = self.file.sync_data();
            flushed.map_err(|cause| error(&self.path, "flush", cause))?;
        }
        step.flushed(&self.path);
        Ok(())
    }

    /// Flushes the file (`fsync`).
    pub fn sync(&self) -> Result<(), DiskError> {
        let step = self.faults.step_flush(&self.path);
        if step.is_wanted() {
            let flushed = self.file.sync_all();
            flushed.map_err(|cause| error(&self.path, "flush", cause))?;
        }
        step.flushed(&self.path);
        Ok(())
    }

    /// Truncates the file to `size` bytes.
    pub(crate) fn truncate(&self, size: u64) -> Result<(), DiskError> {
        let step = self.faults.step("cut", &self.path);
        let cut = self.file.set_len(size);
        cut.map(|()| step.cut(&self.path, size))
            .map_err(|cause| error(&self.path, "cut", cause))
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = self.faults.step_write(&self.path);
        if step.is_half() {
            // The process ends after this write, so its result does not matter.
            let _ = self.file.write_all(&bytes[..bytes.len() / 2]);
            step.end();
        }
        let written = self.file.write(bytes);
        drop(step);
        written.map_err(|cause| full(&self.path, cause))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for DiskFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiskFile").field(&self.path).finish()
    }
}
