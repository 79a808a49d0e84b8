//! Keeps the observations of a run for the next up-to-date check.

use super::changes::{self, LARGE, NotesChanges, SHARE};
use super::form;
use super::observations::Observations;
use super::write::{self, NO_NOTES};
use crate::store::disk::{Disk, DiskError};
use milepost_core::base::digest::Digest;
use std::io::{self, Write};
use std::path::Path;

impl Observations {
    /// Stores the observations and the results of the run under the digest of everything else that it depended on. Returns false if
    /// there is nothing to store.
    ///
    /// # Errors
    /// Fails if the disk fails. A run can ignore that, because the file is a cache.
    pub fn keep(
        &self,
        disk: &Disk,
        path: &Path,
        key: Digest,
        payload: &[u8],
    ) -> Result<bool, DiskError> {
        let mut held = self.questions();
        let Some(questions) = held.as_mut() else {
            return Ok(false);
        };
        let newer = changes::path(path);
        let written = if questions.differing.is_some() {
            let Some((base, size)) = form::seal(path) else {
                return Ok(false);
            };
            let changes = NotesChanges::read(path, key, base);
            if size >= LARGE {
                let mut few = Limited(Vec::new(), size / SHARE);
                let mut before = changes.blocks.iter().cloned().map(Ok);
                let before = Some(&mut before as _);
                if write::write(&mut few, questions, before, Some(base), key, payload).is_ok() {
                    disk.write_swap(&newer, &few.0)?;
                    return Ok(true);
                }
            }
            let Some((notes, _)) = form::open(path, key, None) else {
                return Ok(false);
            };
            let before = notes.blocks().filter_map(|block| match block {
                Ok(block) => changes.applied_to(block).map(Ok),
                Err(_) => Some(Err(NO_NOTES.into())),
            });
            let mut before = before.chain(changes.blocks.iter().cloned().map(Ok));
            disk.write_swap_by(path, |out| {
                write::write(out, questions, Some(&mut before), None, key, payload)
            })
        } else {
            disk.write_swap_by(path, |out| {
                write::write(out, questions, None, None, key, payload)
            })
        };
        match written {
            Err(error) if error.source.kind() == NO_NOTES => return Ok(false),
            written => written?,
        }
        if newer.exists() {
            disk.remove_file(&newer)?;
        }
        Ok(true)
    }
}

/// Bytes that are not to be more than a limit.
struct Limited(Vec<u8>, u64);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > self.1 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
