//! Keeps the observations of a run for the next up-to-date check.

use super::changes::{self, LARGE, NotesChanges, SHARE};
use super::form;
use super::observations::Observations;
use crate::store::disk::{Disk, DiskError};
use milepost_core::base::digest::Digest;
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
        told: &[u8],
    ) -> Result<bool, DiskError> {
        let held = self.questions();
        let Some(questions) = held.as_ref() else {
            return Ok(false);
        };
        let mut before = Vec::new();
        if questions.differing.is_some() {
            let Some((base, size)) = form::seal(path) else {
                return Ok(false);
            };
            let mut changes = NotesChanges::read(path, key, base);
            if size >= LARGE {
                let earlier = std::mem::take(&mut changes.blocks);
                let written = form::write(questions, earlier.clone(), Some(base), key, told);
                changes.blocks = earlier;
                if let Some(bytes) = written
                    && bytes.len() as u64 <= size / SHARE
                {
                    disk.write_swap(&changes::path(path), &bytes)?;
                    return Ok(true);
                }
            }
            let Some((notes, _)) = form::read(path, key, None) else {
                return Ok(false);
            };
            before = changes.applied_to(notes);
        }
        let Some(bytes) = form::write(questions, before, None, key, told) else {
            return Ok(false);
        };
        disk.write_swap(path, &bytes)?;
        let changes = changes::path(path);
        if changes.exists() {
            disk.remove_file(&changes)?;
        }
        Ok(true)
    }
}
