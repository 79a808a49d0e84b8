//! Folders of attempts that are over, kept for those that follow.

use milepost_core::base::path::RelPath;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Folders of attempts that are over, empty but for the folders that their outputs lay in. The next attempt gets one under its
/// own name: making and removing folders costs about as much as starting a small program.
#[derive(Clone, Default)]
pub struct ScratchPool(Arc<Mutex<Vec<Spare>>>);

pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) folders: BTreeSet<RelPath>,
}

impl ScratchPool {
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One with just these folders.
    pub(super) fn take(&self, folders: &BTreeSet<RelPath>) -> Option<PathBuf> {
        let mut all = self.all();
        let at = all.iter().position(|spare| spare.folders == *folders)?;
        Some(all.swap_remove(at).path)
    }
}
