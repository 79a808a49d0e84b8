//! What wakes a watch: a change, or the wish to end. However much changes, it is rung once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many folders that may have been replaced are told apart; where more are, all are.
const APART: usize = 64;

/// Rung by whoever hears of changes, and by signals.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<Rung>,
    ringing: Condvar,
}

#[derive(Debug, Default)]
struct Rung {
    changed: bool,
    ends: bool,
    moved: Moved,
}

/// Paths that were moved or removed: folders among them are no longer heard of.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    paths: BTreeSet<PathBuf>,
    all: bool,
}

impl Moved {
    /// Whether what lies at this path may be another than before.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.all || self.paths.iter().any(|moved| path.starts_with(moved))
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

impl Bell {
    /// Something changed.
    pub(crate) fn change(&self) {
        self.rung().changed = true;
        self.ringing.notify_all();
    }

    /// These were moved or removed.
    pub(crate) fn moved(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let mut rung = self.rung();
        for path in paths {
            rung.moved.add(path);
        }
        rung.changed = true;
        self.ringing.notify_all();
    }

    /// Nobody knows what changed: there was too much of it.
    pub(crate) fn overflow(&self) {
        let mut rung = self.rung();
        rung.moved.all = true;
        rung.changed = true;
        self.ringing.notify_all();
    }

    /// The watch is to end.
    pub(crate) fn end(&self) {
        self.rung().ends = true;
        self.ringing.notify_all();
    }

    /// Whether the watch is to end.
    pub(crate) fn ends(&self) -> bool {
        self.rung().ends
    }

    /// Waits until it is rung, for so long at most. Gives whether something changed.
    pub(crate) fn wait(&self, most: Option<Duration>) -> bool {
        let quiet = |rung: &mut Rung| !rung.changed && !rung.ends;
        let rung = self.rung();
        let mut rung = match most {
            Some(most) => {
                let waited = self.ringing.wait_timeout_while(rung, most, quiet);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.ringing.wait_while(rung, quiet);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        std::mem::take(&mut rung.changed)
    }

    /// Whether something changed that was not waited for.
    pub(crate) fn has_changed(&self) -> bool {
        self.rung().changed
    }

    /// Forgets what changed up to here, and gives what was moved.
    pub(crate) fn take(&self) -> Moved {
        let mut rung = self.rung();
        rung.changed = false;
        std::mem::take(&mut rung.moved)
    }

    fn rung(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_much_changes_it_is_kept_small() {
        let bell = Bell::default();
        bell.moved((0..1_000_000).map(|n| PathBuf::from(format!("inputs/{n}"))));
        assert!(bell.wait(None));
        assert!(!bell.wait(Some(Duration::ZERO)));
        let moved = bell.take();
        assert!(moved.all && moved.paths.len() <= APART);
        bell.moved([PathBuf::from("a/b")]);
        let moved = bell.take();
        let has = |path: &str| moved.has(Path::new(path));
        assert_eq!(
            (has("a/b"), has("a/b/c"), has("a"), has("a/bc")),
            (true, true, false, false)
        );
        bell.end();
        assert!(!bell.wait(None) && bell.ends());
    }
}
