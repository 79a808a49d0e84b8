//! The pool of scratch folders of finished attempts.

use milepost_core::base::path::RelPath;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pool of emptied scratch folders that still contain the folders of their outputs. The next attempt renames one to its own name,
/// because creating and removing folders costs about as much as starting a small program.
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
