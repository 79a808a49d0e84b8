//! The open connections. If there are too many, one that has no request in progress is closed for a new one.

use super::limits::CONNECTIONS;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot::{Receiver, Sender, channel};

/// The open connections, by the order in which they were opened.
pub(super) struct Connections {
    all: Mutex<(u64, BTreeMap<u64, Entry>)>,
    most: usize,
}

struct Entry {
    state: Arc<ConnectionState>,
    /// The connection ends when this is dropped.
    _close: Sender<()>,
}

#[derive(Default)]
struct ConnectionState {
    /// Requests that were read completely and are not answered completely.
    requests: AtomicUsize,
    /// True once a request was admitted.
    is_known: AtomicBool,
}

/// An open connection, until the last clone is dropped.
#[derive(Clone)]
pub(super) struct Connection(Arc<Open>);

struct Open {
    all: Arc<Connections>,
    number: u64,
    state: Arc<ConnectionState>,
}

/// A request in progress, until this is dropped.
pub(super) struct InProgress(Connection);

impl Connections {
    /// Pages need files too, so connections take at most half of those that the process may open.
    pub(super) fn new() -> Arc<Self> {
        let files = getrlimit(Resource::Nofile).current;
        let files = files.map_or(usize::MAX, |files| files as usize);
        Arc::new(Self {
            all: Mutex::default(),
            most: CONNECTIONS.min(files / 2),
        })
    }

    /// Adds a connection, and returns it with the signal that ends it. Returns `None` if all connections have requests in progress.
    pub(super) fn admit(self: &Arc<Self>) -> Option<(Connection, Receiver<()>)> {
        let is_full = self.all().1.len() >= self.most;
        if is_full && !self.close_idle() {
            return None;
        }
        let (close, closed) = channel();
        let state = Arc::new(ConnectionState::default());
        let mut all = self.all();
        all.0 += 1;
        let number = all.0;
        let entry = Entry {
            state: Arc::clone(&state),
            _close: close,
        };
        all.1.insert(number, entry);
        let all = Arc::clone(self);
        let open = Open { all, number, state };
        Some((Connection(Arc::new(open)), closed))
    }

    /// Closes the oldest connection without a request in progress; first those that never had an admitted one. Returns false if
    /// there is none.
    pub(super) fn close_idle(&self) -> bool {
        let mut all = self.all();
        let idle = all.1.iter().filter(|(_, entry)| {
            let state = &entry.state;
            state.requests.load(Ordering::Acquire) == 0
        });
        let first = idle
            .min_by_key(|(number, entry)| (entry.state.is_known.load(Ordering::Acquire), **number));
        let Some(number) = first.map(|(number, _)| *number) else {
            return false;
        };
        all.1.remove(&number).is_some()
    }

    fn all(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Entry>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Notes that a request of the connection was admitted.
    pub(super) fn admitted(&self) {
        self.0.state.is_known.store(true, Ordering::Release);
    }

    /// Counts a request.
    pub(super) fn begin(&self) -> InProgress {
        self.0.state.requests.fetch_add(1, Ordering::AcqRel);
        InProgress(self.clone())
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.0.state.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let removed = self.all.all().1.remove(&self.number);
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_those_that_never_asked_first_and_those_at_work_never() {
        let all = Connections::new();
        let (asked, asked_closed) = all.admit().unwrap();
        let (_half, mut half_closed) = all.admit().unwrap();
        asked.admitted();
        let at_work = asked.begin();
        let rest: Vec<_> = (2..all.most).map(|_| all.admit().unwrap()).collect();
        for (one, _) in &rest {
            one.admitted();
        }
        let busy: Vec<_> = rest.iter().map(|(one, _)| one.begin()).collect();
        assert!(
            half_closed
                .try_recv()
                .is_err_and(|error| error == tokio::sync::oneshot::error::TryRecvError::Empty)
        );
        let last = all.admit().unwrap();
        assert!(
            half_closed
                .try_recv()
                .is_err_and(|error| error == tokio::sync::oneshot::error::TryRecvError::Closed)
        );
        let _at_work_too = last.0.begin();
        assert!(all.admit().is_none());
        drop((at_work, busy));
        assert!(all.admit().is_some());
        drop(asked_closed);
    }
}
