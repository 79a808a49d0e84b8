//! What crash tests see of the disk: operations are counted and listed, and the process ends at the Nth. Release builds have none of it.

#[cfg(any(test, debug_assertions))]
use super::power::Power;
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
fn end_here() -> ! {
    std::process::abort()
}

/// An operation that was counted and may be done. Whoever did it says so, for the disk that forgets.
#[cfg(any(test, debug_assertions))]
pub(super) struct Step<'a> {
    power: Option<std::sync::MutexGuard<'a, Power>>,
    is_half: bool,
    is_wanted: bool,
}

/// An operation that may be done.
#[cfg(not(any(test, debug_assertions)))]
pub(super) struct Step<'a>(std::marker::PhantomData<&'a Seam>);

#[cfg(any(test, debug_assertions))]
#[derive(Default)]
pub(super) struct Seam {
    count: std::sync::atomic::AtomicU64,
    stop: Option<(u64, Stop)>,
    unflushed: bool,
    list: Option<std::sync::Mutex<std::fs::File>>,
    power: Option<std::sync::Mutex<Power>>,
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
    /// each operation to a file: what is done, and to what; `power=SEED@FOLDER` leaves the folder, when the process is
    /// stopped, as a power failure might (see `power.rs`), and flushes nothing else.
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
            let power = part.strip_prefix("power=");
            if let Some((seed, root)) = power.and_then(|power| power.split_once('@'))
                && let Ok(seed) = seed.parse()
            {
                seam.unflushed = true;
                let power = Power::new(Path::new(root), seed);
                seam.power = Some(std::sync::Mutex::new(power));
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
        let list = self.list.as_ref().map(locked);
        if let Some(mut list) = list.as_deref() {
            let _ = writeln!(list, "{action} {}", path.display());
        }
        self.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1
    }

    fn take(&self, action: &str, path: &Path, can_be_half: bool) -> Step<'_> {
        // While the power fails, no other thread is in the middle of an operation.
        let power = self.power.as_ref().map(locked);
        let number = self.next(action, path);
        let mut step = Step {
            power,
            is_half: false,
            is_wanted: true,
        };
        match self.stop {
            Some((n, Stop::HalfWrite)) if number == n && can_be_half => step.is_half = true,
            // Other threads may be past the number while the process ends: they stop as well.
            Some((n, _)) if number >= n => step.end(),
            _ => {}
        }
        step
    }

    /// Counts an operation. Does not return when it is the one to stop at.
    pub(super) fn step(&self, action: &str, path: &Path) -> Step<'_> {
        self.take(action, path, false)
    }

    /// Counts an operation that takes a name away, or gives it to another file.
    pub(super) fn step_away(&self, action: &str, path: &Path, can_be_half: bool) -> Step<'_> {
        let mut step = self.take(action, path, can_be_half);
        if let Some(power) = &mut step.power {
            power.going(path);
        }
        step
    }

    /// Counts a flush.
    pub(super) fn step_flush(&self, path: &Path) -> Step<'_> {
        let mut step = self.take("flush", path, false);
        step.is_wanted = !self.unflushed;
        step
    }

    /// Counts a write.
    pub(super) fn step_write(&self, path: &Path) -> Step<'_> {
        self.take("write", path, true)
    }
}

#[cfg(any(test, debug_assertions))]
fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(any(test, debug_assertions))]
impl Step<'_> {
    /// Whether the process is to end in the middle of it.
    pub(super) fn is_half(&self) -> bool {
        self.is_half
    }

    /// Whether a flush is to be done.
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

    /// Something was made at a path, or opened.
    pub(super) fn made(self, path: &Path) {
        self.tell(|power| power.made(path));
    }

    /// A file was made or opened, and cut to its first bytes.
    pub(super) fn cut(self, path: &Path, size: u64) {
        self.tell(|power| power.cut(path, size as usize));
    }

    /// What was at `from` is at `to`.
    pub(super) fn renamed(self, from: &Path, to: &Path) {
        self.tell(|power| power.renamed(from, to));
    }

    /// What was at a path is gone.
    pub(super) fn removed(self, path: &Path) {
        self.tell(|power| power.removed(path));
    }

    /// What is at a path is durable: the bytes of a file, the entries of a folder.
    pub(super) fn flushed(self, path: &Path) {
        self.tell(|power| power.flushed(path));
    }

    /// Everything is durable.
    pub(super) fn flushed_all(self) {
        self.tell(Power::flush_all);
    }
}

#[cfg(not(any(test, debug_assertions)))]
#[allow(clippy::unused_self)]
impl Seam {
    pub(super) fn step(&self, _: &str, _: &Path) -> Step<'_> {
        Step(std::marker::PhantomData)
    }

    pub(super) fn step_away(&self, _: &str, _: &Path, _: bool) -> Step<'_> {
        Step(std::marker::PhantomData)
    }

    pub(super) fn step_flush(&self, _: &Path) -> Step<'_> {
        Step(std::marker::PhantomData)
    }

    pub(super) fn step_write(&self, _: &Path) -> Step<'_> {
        Step(std::marker::PhantomData)
    }
}

#[cfg(not(any(test, debug_assertions)))]
#[allow(clippy::unused_self)]
impl Step<'_> {
    pub(super) fn is_half(&self) -> bool {
        false
    }

    pub(super) fn is_wanted(&self) -> bool {
        true
    }

    pub(super) fn end(self) -> ! {
        end_here()
    }

    pub(super) fn made(self, _: &Path) {}

    pub(super) fn cut(self, _: &Path, _: u64) {}

    pub(super) fn renamed(self, _: &Path, _: &Path) {}

    pub(super) fn removed(self, _: &Path) {}

    pub(super) fn flushed(self, _: &Path) {}

    pub(super) fn flushed_all(self) {}
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
        drop(seam.step("rename", Path::new("a")));
        assert!(!seam.step_flush(Path::new("b")).is_wanted());
        assert!(!seam.step_write(Path::new("c")).is_half());
        let text = std::fs::read_to_string(&list).unwrap();
        assert_eq!(text, "rename a\nflush b\nwrite c\n");
        assert_eq!(seam.count(), 3);
    }
}
