//! Faults for crash tests: operations on the disk are counted and listed, and the process ends at the Nth.
//!
//! Builds without the feature `faults` have `no_faults.rs` instead.

mod after;
mod power;

use power::Power;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a crash test ends the process at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashPoint {
    /// The process ends before the operation.
    Before,
    /// The process ends in the middle: half of the bytes of a write reach the file, a part of a removed folder is gone. It ends
    /// before any other operation.
    HalfWrite,
}

/// Ends the process as a kill does: nothing is unwound, flushed or removed.
fn end_here() -> ! {
    std::process::abort()
}

/// An operation that was counted and may be done. The caller reports its result, for the shadow of a power failure.
pub(super) struct Operation<'a> {
    power: Option<MutexGuard<'a, Power>>,
    is_half: bool,
    is_wanted: bool,
}

/// Counts operations and ends the process at one of them.
#[derive(Default)]
pub(super) struct Faults {
    count: AtomicU64,
    stop: Option<(u64, CrashPoint)>,
    unflushed: bool,
    list: Option<Mutex<std::fs::File>>,
    power: Option<Mutex<Power>>,
}

impl Faults {
    /// Reads a setting, whose parts are separated by commas: `57` ends the process before the 57th operation, `57:half` in the
    /// middle of it; `unflushed` skips all flushes, which only a failing machine could tell; `list=PATH` appends the action and
    /// the path of each operation to a file; `power=SEED@FOLDER` leaves the folder, when the process ends, as a power failure
    /// might (see `power.rs`), and skips flushes.
    pub(super) fn from_setting(setting: &str) -> Self {
        let mut faults = Self::default();
        for part in setting.split(',') {
            let (number, stop) = match part.strip_suffix(":half") {
                Some(number) => (number, CrashPoint::HalfWrite),
                None => (part, CrashPoint::Before),
            };
            if let Ok(n) = number.parse() {
                faults.stop = Some((n, stop));
            }
            faults.unflushed |= part == "unflushed";
            if let Some(path) = part.strip_prefix("list=") {
                let opened = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(path);
                faults.list = opened.ok().map(Mutex::new);
            }
            let power = part.strip_prefix("power=");
            if let Some((seed, root)) = power.and_then(|power| power.split_once('@'))
                && let Ok(seed) = seed.parse()
            {
                faults.unflushed = true;
                let power = Power::new(Path::new(root), seed);
                faults.power = Some(Mutex::new(power));
            }
        }
        faults
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn next(&self, action: &str, path: &Path) -> u64 {
        use std::io::Write as _;
        // The order of the list is that of the numbers.
        let list = self.list.as_ref().map(locked);
        if let Some(mut list) = list.as_deref() {
            let _ = writeln!(list, "{action} {}", path.display());
        }
        self.count.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn take(&self, action: &str, path: &Path, can_be_half: bool) -> Operation<'_> {
        // While the power fails, no other thread is in the middle of an operation.
        let power = self.power.as_ref().map(locked);
        let number = self.next(action, path);
        let mut step = Operation {
            power,
            is_half: false,
            is_wanted: true,
        };
        match self.stop {
            Some((n, CrashPoint::HalfWrite)) if number == n && can_be_half => step.is_half = true,
            // Other threads may be past the number while the process ends: they stop as well.
            Some((n, _)) if number >= n => step.end(),
            _ => {}
        }
        step
    }

    /// Counts an operation. Does not return when it is the one to stop at.
    pub(super) fn step(&self, action: &str, path: &Path) -> Operation<'_> {
        self.take(action, path, false)
    }

    /// Counts an operation that removes a name, or moves it to another file.
    pub(super) fn step_away(&self, action: &str, path: &Path, can_be_half: bool) -> Operation<'_> {
        let mut step = self.take(action, path, can_be_half);
        if let Some(power) = &mut step.power {
            power.going(path);
        }
        step
    }

    /// Counts a flush.
    pub(super) fn step_flush(&self, path: &Path) -> Operation<'_> {
        let mut step = self.take("flush", path, false);
        step.is_wanted = !self.unflushed;
        step
    }

    /// Counts a write.
    pub(super) fn step_write(&self, path: &Path) -> Operation<'_> {
        self.take("write", path, true)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Operation<'_> {
    /// Returns true if the process ends in the middle of it.
    pub(super) fn is_half(&self) -> bool {
        self.is_half
    }

    /// Returns true if a flush is done and not skipped.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Ends the process.
    pub(super) fn end(mut self) -> ! {
        if let Some(power) = &mut self.power {
            power.off();
        }
        end_here()
    }

    fn tell(mut self, what: impl FnOnce(&mut Power)) {
        if let Some(power) = &mut self.power {
            what(power);
        }
    }

    /// Reports that something was created or opened at a path.
    pub(super) fn made(self, path: &Path) {
        self.tell(|power| power.made(path));
    }

    /// Reports that a file was opened and truncated.
    pub(super) fn cut(self, path: &Path, size: u64) {
        self.tell(|power| power.cut(path, size as usize));
    }

    /// Reports a rename.
    pub(super) fn renamed(self, from: &Path, to: &Path) {
        self.tell(|power| power.renamed(from, to));
    }

    /// Reports a removal.
    pub(super) fn removed(self, path: &Path) {
        self.tell(|power| power.removed(path));
    }

    /// Reports that a file or the entries of a folder are durable.
    pub(super) fn flushed(self, path: &Path) {
        self.tell(|power| power.flushed(path));
    }

    /// Reports that everything is durable.
    pub(super) fn flushed_all(self) {
        self.tell(Power::flush_all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_setting_of_a_crash_test() {
        for (setting, stop, unflushed) in [
            ("57", Some((57, CrashPoint::Before)), false),
            ("57:half", Some((57, CrashPoint::HalfWrite)), false),
            ("57:half,unflushed", Some((57, CrashPoint::HalfWrite)), true),
            ("unflushed", None, true),
            ("x", None, false),
            ("", None, false),
        ] {
            let faults = Faults::from_setting(setting);
            assert_eq!(
                (faults.stop, faults.unflushed),
                (stop, unflushed),
                "{setting}"
            );
        }
    }

    #[test]
    fn lists_operations_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let faults = Faults::from_setting(&format!("unflushed,list={}", list.display()));
        drop(faults.step("rename", Path::new("a")));
        assert!(!faults.step_flush(Path::new("b")).is_wanted());
        assert!(!faults.step_write(Path::new("c")).is_half());
        let text = std::fs::read_to_string(&list).unwrap();
        assert_eq!(text, "rename a\nflush b\nwrite c\n");
        assert_eq!(faults.count(), 3);
    }
}
