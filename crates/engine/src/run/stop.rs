//! The flag that stops a run.

pub use crate::steps::command::adopt_orphans;
use crate::steps::command::{StopSignal, StopTime};
pub use crate::steps::worker::{ARGUMENT as WORKER, serve, use_workers};
use milepost_store::store::read;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A flag that stops a run. Ctrl-C or the caller sets it once.
#[derive(Default)]
pub struct StopFlag {
    is_set: Mutex<bool>,
    changed: Condvar,
    stopped: Arc<StopTime>,
}

impl StopFlag {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run.
    pub fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stopped.set();
        self.changed.notify_all();
    }
}

impl StopFlag {
    /// Returns when the run was stopped, for code that polls it.
    pub(crate) fn stopped(&self) -> Arc<StopTime> {
        Arc::clone(&self.stopped)
    }

    /// Waits for a time, or until the flag is set.
    pub fn pause(&self, duration: Duration) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(is_set, duration, |is_set| !*is_set);
        drop(waited);
    }

    /// Returns true if the flag is set.
    pub fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StopSignal for StopFlag {
    fn stopping(&self) -> bool {
        self.is_set()
    }

    fn wait(&self, duration: Duration) {
        self.pause(duration);
    }
}

/// Returns the signals that this process ignores, a bit each; none on systems without `/proc`.
pub fn ignored_signals() -> u64 {
    let status = read::text("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
