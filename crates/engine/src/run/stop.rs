//! The wish to stop a run, seen by everything that waits.

use crate::steps::command::Stop;
pub use crate::steps::command::adopt_orphans;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Set once, by Ctrl-C or by the caller.
#[derive(Default)]
pub struct StopFlag {
    wished: Mutex<bool>,
    changed: Condvar,
    seen: Arc<AtomicBool>,
}

impl StopFlag {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything to stop.
    pub fn set(&self) {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.seen.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

impl StopFlag {
    /// The flag for what cannot wait for it, and looks now and then.
    pub(crate) fn seen(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.seen)
    }

    /// Waits this long, or until it is set.
    pub fn pause(&self, duration: Duration) {
        let wished = self.wished.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(wished, duration, |wished| !*wished);
        drop(waited);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stop for StopFlag {
    fn stopping(&self) -> bool {
        self.is_set()
    }

    fn wait(&self, duration: Duration) {
        self.pause(duration);
    }
}
