//! The calls in flight, so that the server can cancel them and wait for their end.

use milepost_engine::ops::run::StopFlag;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The calls in flight.
#[derive(Default)]
pub(super) struct InFlight {
    calls: Mutex<Calls>,
    changed: Condvar,
}

#[derive(Default)]
struct Calls {
    last: u64,
    open: BTreeMap<u64, Arc<StopFlag>>,
    ending: bool,
}

/// A call, in flight until this is dropped.
pub(super) struct InFlightCall {
    all: Arc<InFlight>,
    number: u64,
    /// Set when the call is cancelled.
    pub(crate) stop: Arc<StopFlag>,
}

impl InFlight {
    /// Adds a call. If the server is ending, the call is cancelled at once.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlightCall {
        let stop = Arc::new(StopFlag::new());
        let mut calls = self.calls();
        calls.last += 1;
        let number = calls.last;
        calls.open.insert(number, Arc::clone(&stop));
        if calls.ending {
            stop.set();
        }
        InFlightCall {
            all: Arc::clone(self),
            number,
            stop,
        }
    }

    /// Cancels all calls.
    pub(crate) fn stop(&self) {
        let mut calls = self.calls();
        calls.ending = true;
        calls.open.values().for_each(|stop| stop.set());
    }

    /// Cancels all calls, and waits until they have ended.
    pub(crate) fn end(&self) {
        self.stop();
        let calls = self.calls();
        let waited = self
            .changed
            .wait_while(calls, |calls| !calls.open.is_empty());
        drop(waited);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        self.all.calls().open.remove(&self.number);
        self.all.changed.notify_all();
    }
}
