//! The clients of the server: who they are, and how many calls they have in progress.

use super::limits::{ALL_CHANGES, ALL_READS, ALL_WAITS, CALLS, WAITS};
use super::tool_error::ToolError;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::external::LeaseClient;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The state that the clients of a server share.
pub(super) struct Clients {
    /// The ids of the open sessions.
    open: Mutex<BTreeSet<Digest>>,
    last: AtomicU64,
    reads: Arc<Semaphore>,
    waits: Arc<Semaphore>,
    changes: Arc<Semaphore>,
}

/// A client: a session by HTTP, a connection by HTTP without sessions, or the process at standard input.
pub(super) struct Client {
    all: Arc<Clients>,
    id: Digest,
    /// True once the client opened a session. Without one, a client by HTTP is its connection.
    has_session: AtomicBool,
    calls: Arc<Semaphore>,
    waits: Arc<Semaphore>,
}

/// A call in progress counts until this is dropped.
pub(super) struct Slot {
    _permits: [OwnedSemaphorePermit; 2],
}

/// The kind of a call in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// It reads, and ends soon.
    Reads,
    /// It may write, or wait for a lock.
    Changes,
    /// It waits for a file.
    Waits,
}

impl Clients {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            last: AtomicU64::new(0),
            reads: Arc::new(Semaphore::new(ALL_READS)),
            waits: Arc::new(Semaphore::new(ALL_WAITS)),
            changes: Arc::new(Semaphore::new(ALL_CHANGES)),
        })
    }

    /// Adds a client. It is open until the last reference to it is dropped.
    pub(super) fn client(self: &Arc<Self>) -> Arc<Client> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        // Leases name the process too, so the number is unique.
        let id = Digest::of(format!("session {number}"));
        self.open().insert(id);
        Arc::new(Client {
            all: Arc::clone(self),
            id,
            has_session: AtomicBool::new(false),
            calls: Arc::new(Semaphore::new(CALLS)),
            waits: Arc::new(Semaphore::new(WAITS)),
        })
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<Digest>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Counts a call.
    ///
    /// # Errors
    /// If as many calls are in progress as may be.
    pub(super) fn begin(&self, kind: CallKind) -> Result<Slot, ToolError> {
        let (own, most, all, most_of_all) = match kind {
            CallKind::Reads => (&self.calls, CALLS, &self.all.reads, ALL_READS),
            CallKind::Changes => (&self.calls, CALLS, &self.all.changes, ALL_CHANGES),
            CallKind::Waits => (&self.waits, WAITS, &self.all.waits, ALL_WAITS),
        };
        let own = take(own).ok_or_else(|| too_many("this client", most))?;
        let all = take(all).ok_or_else(|| too_many("the server", most_of_all))?;
        Ok(Slot {
            _permits: [own, all],
        })
    }

    /// Notes that the client opened a session.
    pub(super) fn open_session(&self) {
        self.has_session.store(true, Ordering::Release);
    }

    /// Returns true if the client opened a session.
    pub(super) fn has_session(&self) -> bool {
        self.has_session.load(Ordering::Acquire)
    }

    /// Returns the client of a session as the owner of leases.
    pub(super) fn lease_client(&self) -> LeaseClient {
        LeaseClient {
            id: self.id,
            open: Some(self.all.open().clone()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.all.open().remove(&self.id);
    }
}

/// Returns the owner of leases for a client without a session, which only its name distinguishes from others.
pub(super) fn lease_client_by_name(name: &str) -> LeaseClient {
    LeaseClient {
        id: Digest::of(format!("client {name}")),
        open: None,
    }
}

fn take(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_owned().ok()
}

fn too_many(who: &str, most: usize) -> ToolError {
    ToolError::new(
        "too_many_calls",
        format!("{who} has {most} calls of this kind in progress, the most at once"),
        "wait until a call has ended, then call again",
    )
}
