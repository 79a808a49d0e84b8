//! The flag that stops a run.

use crate::steps::command::StopSignal;
pub use crate::steps::command::adopt_orphans;
pub use crate::steps::worker::{ARGUMENT as WORKER, serve, use_workers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A flag that stops a run. Ctrl-C or the caller sets it once.
#[derive(Default)]
pub struct StopFlag {
    wished: Mutex<bool>,
    changed: Condvar,
    seen: Arc<AtomicBool>,
}

impl StopFlag {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run.
    pub fn set(&self) {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.seen.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

impl StopFlag {
    /// Returns the raw flag, for code that polls it.
    pub(crate) fn seen(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.seen)
    }

    /// Waits for a time, or until the flag is set.
    pub fn pause(&self, duration: Duration) {
        let wished = self.wished.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(wished, duration, |wished| !*wished);
        drop(waited);
    }

    /// Returns true if the flag is set.
    pub fn is_set(&self) -> bool {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner)
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
