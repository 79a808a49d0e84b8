//! Wakes a watch after a change or a request to stop. Any number of changes wakes it once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most moved paths that are kept; beyond them, every path counts as moved.
const APART: usize = 64;

/// Notifications from the system and from signals, for one waiting watch.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    received: Mutex<Received>,
    condvar: Condvar,
}

#[derive(Debug, Default)]
struct Received {
    changed: bool,
    ends: bool,
    moved: Moved,
}

/// Paths that were moved or removed, and new folders. The system no longer reports changes in folders that were moved.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    paths: BTreeSet<PathBuf>,
    all: bool,
}

impl Moved {
    /// Returns true if another file or folder may be at this path now.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.any(|moved| path.starts_with(moved))
    }

    /// Returns true if this is so of a moved path, or if they are not known.
    pub(crate) fn any(&self, is_so: impl FnMut(&PathBuf) -> bool) -> bool {
        self.all || self.paths.iter().any(is_so)
    }

    fn add(&mut self, path: PathBuf) {
        if self.paths.len() < APART {
            self.paths.insert(path);
        } else {
            self.all = true;
            self.paths.clear();
        }
    }
}

impl Notify {
    /// Records a change.
    pub(crate) fn change(&self) {
        self.received().changed = true;
        self.condvar.notify_all();
    }

    /// Records moved or removed paths.
    pub(crate) fn moved(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let mut received = self.received();
        for path in paths {
            received.moved.add(path);
        }
        received.changed = true;
        self.condvar.notify_all();
    }

    /// Records that the system lost notifications: everything may have changed.
    pub(crate) fn overflow(&self) {
        let mut received = self.received();
        received.moved.all = true;
        received.changed = true;
        self.condvar.notify_all();
    }

    /// Asks the watch to stop.
    pub(crate) fn end(&self) {
        self.received().ends = true;
        self.condvar.notify_all();
    }

    /// Returns true if the watch should stop.
    pub(crate) fn ends(&self) -> bool {
        self.received().ends
    }

    /// Waits for a notification, at most this long. Returns true if something changed.
    pub(crate) fn wait(&self, most: Option<Duration>) -> bool {
        let quiet = |received: &mut Received| !received.changed && !received.ends;
        let received = self.received();
        let mut received = match most {
            Some(most) => {
                let waited = self.condvar.wait_timeout_while(received, most, quiet);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.condvar.wait_while(received, quiet);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        std::mem::take(&mut received.changed)
    }

    /// Returns true if something changed since the last wait.
    pub(crate) fn has_changed(&self) -> bool {
        self.received().changed
    }

    /// Forgets all changes, and returns the moved paths.
    pub(crate) fn take(&self) -> Moved {
        let mut received = self.received();
        received.changed = false;
        std::mem::take(&mut received.moved)
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_for_any_number_of_changes() {
        let notify = Notify::default();
        notify.moved((0..1_000_000).map(|n| PathBuf::from(format!("inputs/{n}"))));
        assert!(notify.wait(None));
        assert!(!notify.wait(Some(Duration::ZERO)));
        let moved = notify.take();
        assert!(moved.all && moved.paths.len() <= APART);
        notify.moved([PathBuf::from("a/b")]);
        let moved = notify.take();
        let has = |path: &str| moved.has(Path::new(path));
        assert_eq!(
            (has("a/b"), has("a/b/c"), has("a"), has("a/bc")),
            (true, true, false, false)
        );
        notify.end();
        assert!(!notify.wait(None) && notify.ends());
    }
}
