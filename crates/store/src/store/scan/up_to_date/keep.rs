//! Keeps the observations of a run for the next up-to-date check.

use super::form;
use super::observations::Observations;
use crate::store::disk::{Disk, DiskError};
use milepost_core::base::digest::Digest;
use std::path::Path;

impl Observations {
    /// Stores the observations and the results of the run under the digest of everything else that it depended on.
    ///
    /// # Errors
    /// Fails if the disk fails. A run can ignore that, because the file is a cache.
    pub fn keep(
        &self,
        disk: &Disk,
        path: &Path,
        key: Digest,
        told: &[u8],
    ) -> Result<(), DiskError> {
        let held = self.questions();
        let Some(questions) = held.as_ref() else {
            return Ok(());
        };
        let before = match &questions.differing {
            Some(_) => match form::read(path, key) {
                Some(blocks) => Some(blocks),
                None => return Ok(()),
            },
            None => None,
        };
        match form::write(questions, before, key, told) {
            Some(bytes) => disk.write_swap(path, &bytes),
            None => Ok(()),
        }
    }
}
