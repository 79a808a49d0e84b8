//! The calls that are under way, so that the server can end them and wait until they have ended.

use milepost_engine::ops::run::StopFlag;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The calls that are under way.
#[derive(Default)]
pub(super) struct UnderWay {
    calls: Mutex<Calls>,
    changed: Condvar,
}

#[derive(Default)]
struct Calls {
    last: u64,
    open: BTreeMap<u64, Arc<StopFlag>>,
    ending: bool,
}

/// One of them, until this is dropped.
pub(super) struct Entry {
    all: Arc<UnderWay>,
    number: u64,
    /// The wish to end it.
    pub(super) stop: Arc<StopFlag>,
}

impl UnderWay {
    /// A call begins. One that comes while the server ends is told to stop at once.
    pub(super) fn begin(self: &Arc<Self>) -> Entry {
        let stop = Arc::new(StopFlag::new());
        let mut calls = self.calls();
        calls.last += 1;
        let number = calls.last;
        calls.open.insert(number, Arc::clone(&stop));
        if calls.ending {
            stop.set();
        }
        Entry {
            all: Arc::clone(self),
            number,
            stop,
        }
    }

    /// Asks all calls to stop.
    pub(super) fn stop(&self) {
        let mut calls = self.calls();
        calls.ending = true;
        calls.open.values().for_each(|stop| stop.set());
    }

    /// Asks all calls to stop, and waits until they have.
    pub(super) fn end(&self) {
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

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.calls().open.remove(&self.number);
        self.all.changed.notify_all();
    }
}
