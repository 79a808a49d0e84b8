//! Redirects of readers, for files that a run published and did not move yet.

use milepost_core::base::path::RelPath;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Where a file is until it is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirect {
    /// In scratch, from where it will be renamed into place.
    Published(RelPath),
    /// In quarantine, from where the next run restores it.
    Restored(RelPath),
    /// In its place, from where it will move to this path in quarantine. It counts as gone.
    Retired(RelPath),
}

/// The redirects of one workspace, in which readers see its files as they will be after recovery. Clones share them. Empty for
/// writers, which recover first.
#[derive(Debug, Clone, Default)]
pub struct Redirects(Arc<RwLock<RedirectTable>>);

#[derive(Debug, Default)]
struct RedirectTable {
    files: BTreeMap<RelPath, Redirect>,
    is_running: bool,
}

impl Redirects {
    /// Replaces all redirects. `is_running`: the run that published the files continues, and moves them itself.
    pub fn set(&self, files: BTreeMap<RelPath, Redirect>, is_running: bool) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *table = RedirectTable { files, is_running };
    }

    /// Redirects reads of files that a plan expects to be restored from quarantine.
    pub fn restore<'a>(&self, files: impl Iterator<Item = (&'a RelPath, &'a RelPath)>) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let files = files.map(|(path, from)| (path.clone(), Redirect::Restored(from.clone())));
        table.files.extend(files);
    }

    /// Removes the redirects of an earlier plan.
    pub fn forget_restored(&self) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_restored = |redirect: &Redirect| matches!(redirect, Redirect::Restored(_));
        table.files.retain(|_, redirect| !is_restored(redirect));
    }

    /// Removes all redirects.
    pub fn clear(&self) {
        self.set(BTreeMap::new(), false);
    }

    /// Returns the number of published files that the next run puts in place.
    pub fn half_published(&self) -> u64 {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_published = |redirect: &&Redirect| matches!(redirect, Redirect::Published(_));
        let published = table.files.values().filter(is_published).count() as u64;
        if table.is_running { 0 } else { published }
    }

    /// Returns the names of the runs in whose scratch published files are.
    pub fn scratch(&self) -> BTreeSet<String> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let published = table.files.values().filter_map(|redirect| match redirect {
            Redirect::Published(scratch) => scratch.as_str().split('/').nth(2),
            Redirect::Restored(_) | Redirect::Retired(_) => None,
        });
        published.map(str::to_owned).collect()
    }

    /// Returns the path at which a file of the workspace in `root` is read; `None` if that is its own path.
    pub(crate) fn target(&self, root: &Path, path: &RelPath) -> Option<RelPath> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        active(root, table.files.get(path)?).cloned()
    }

    /// Returns the paths that have a redirect, each with false if its file counts as gone.
    pub(crate) fn list(&self, root: &Path) -> Vec<(RelPath, bool)> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let files = table.files.iter();
        let files = files.filter(|(_, redirect)| active(root, redirect).is_some());
        let is_there = |redirect: &Redirect| !matches!(redirect, Redirect::Retired(_));
        files
            .map(|(path, redirect)| (path.clone(), is_there(redirect)))
            .collect()
    }
}

/// Returns the path of a redirect, unless the file was moved meanwhile.
fn active<'a>(root: &Path, redirect: &'a Redirect) -> Option<&'a RelPath> {
    let exists = |path: &RelPath| root.join(path.as_str()).symlink_metadata().is_ok();
    match redirect {
        Redirect::Published(from) | Redirect::Restored(from) => exists(from).then_some(from),
        // Nothing is at that path before the move, so the file counts as gone.
        Redirect::Retired(aside) => (!exists(aside)).then_some(aside),
    }
}
