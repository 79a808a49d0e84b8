//! What crash tests see of the disk: operations are counted and listed, and the process ends at the Nth. Release builds have none of it.

use std::path::Path;

/// How a counted operation is stopped, for crash tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The process ends before the operation.
    Before,
    /// Of a write, half of the bytes reach the file, then the process ends; of a folder that is removed, a part is gone; other
    /// operations are stopped before.
    HalfWrite,
}

/// Ends the process as a kill does: nothing is unwound, flushed or removed.
pub(super) fn end_here() -> ! {
    std::process::abort()
}

#[cfg(any(test, debug_assertions))]
#[derive(Default)]
pub(super) struct Seam {
    count: std::sync::atomic::AtomicU64,
    pub(super) stop: Option<(u64, Stop)>,
    unflushed: bool,
    list: Option<std::sync::Mutex<std::fs::File>>,
}

#[cfg(not(any(test, debug_assertions)))]
#[derive(Default)]
pub(super) struct Seam;

#[cfg(any(test, debug_assertions))]
impl Seam {
    pub(super) fn stopping_at(n: u64, stop: Stop) -> Self {
        Self {
            stop: Some((n, stop)),
            ..Self::default()
        }
    }

    /// What a test asks for, in parts with commas between: `57` stops before the 57th operation, `57:half` in the middle of
    /// its write; `unflushed` flushes nothing, which only a machine that fails could tell; `list=PATH` appends a line for
    /// each operation to a file: what is done, and to what.
    pub(super) fn from_setting(setting: &str) -> Self {
        let mut seam = Self::default();
        for part in setting.split(',') {
            let (number, stop) = match part.strip_suffix(":half") {
                Some(number) => (number, Stop::HalfWrite),
                None => (part, Stop::Before),
            };
            if let Ok(n) = number.parse() {
                seam.stop = Some((n, stop));
            }
            seam.unflushed |= part == "unflushed";
            if let Some(path) = part.strip_prefix("list=") {
                let opened = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(path);
                seam.list = opened.ok().map(std::sync::Mutex::new);
            }
        }
        seam
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn next(&self, action: &str, path: &Path) -> u64 {
        use std::io::Write as _;
        // The order of the list is that of the numbers.
        let list = self.list.as_ref().map(|list| {
            list.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        });
        if let Some(mut list) = list.as_deref() {
            let _ = writeln!(list, "{action} {}", path.display());
        }
        self.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1
    }

    pub(super) fn step(&self, action: &str, path: &Path) {
        let number = self.next(action, path);
        // Other threads may be past the number while the process ends: they stop as well.
        if self.stop.is_some_and(|(n, _)| number >= n) {
            end_here();
        }
    }

    /// Counts a flush; whether it is to be done.
    pub(super) fn step_flush(&self, path: &Path) -> bool {
        self.step("flush", path);
        !self.unflushed
    }

    /// Counts the removal of a folder with all that is in it; whether it is to be stopped in the middle.
    pub(super) fn step_remove_all(&self, folder: &Path) -> bool {
        let number = self.next("remove", folder);
        match self.stop {
            Some((n, Stop::HalfWrite)) if number == n => true,
            Some((n, _)) if number >= n => end_here(),
            _ => false,
        }
    }

    pub(super) fn step_write<'a>(&self, path: &Path, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let number = self.next("write", path);
        match self.stop {
            Some((n, Stop::HalfWrite)) if number == n => Some(&bytes[..bytes.len() / 2]),
            Some((n, _)) if number >= n => end_here(),
            _ => None,
        }
    }
}

#[cfg(not(any(test, debug_assertions)))]
#[allow(clippy::unused_self)]
impl Seam {
    pub(super) fn step(&self, _: &str, _: &Path) {}

    pub(super) fn step_flush(&self, _: &Path) -> bool {
        true
    }

    pub(super) fn step_remove_all(&self, _: &Path) -> bool {
        false
    }

    pub(super) fn step_write<'a>(&self, _: &Path, _: &'a [u8]) -> Option<&'a [u8]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_setting_of_a_crash_test() {
        for (setting, stop, unflushed) in [
            ("57", Some((57, Stop::Before)), false),
            ("57:half", Some((57, Stop::HalfWrite)), false),
            ("57:half,unflushed", Some((57, Stop::HalfWrite)), true),
            ("unflushed", None, true),
            ("x", None, false),
            ("", None, false),
        ] {
            let seam = Seam::from_setting(setting);
            assert_eq!((seam.stop, seam.unflushed), (stop, unflushed), "{setting}");
        }
    }

    #[test]
    fn lists_operations_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let seam = Seam::from_setting(&format!("unflushed,list={}", list.display()));
        seam.step("rename", Path::new("a"));
        assert!(!seam.step_flush(Path::new("b")));
        assert_eq!(seam.step_write(Path::new("c"), b"x"), None);
        let text = std::fs::read_to_string(&list).unwrap();
        assert_eq!(text, "rename a\nflush b\nwrite c\n");
        assert_eq!(seam.count(), 3);
    }
}
