//! The open sessions: how many requests each has in progress, and which one makes room for a new one.

use crate::mcp::limits::{REQUESTS, SESSIONS};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// The sessions that clients opened, by their ids.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Grows with each request.
    clock: u64,
    sessions: HashMap<String, Session>,
    /// The number of sessions that are being opened.
    opening: usize,
}

/// Room for a session that is being opened, until this is dropped.
pub(super) struct Room<'a>(&'a Sessions);

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.used().opening -= 1;
    }
}

struct Session {
    requests: Arc<Semaphore>,
    /// The number of requests, and the time of the last one.
    count: u64,
    last: u64,
}

impl Sessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Self {
        Self {
            manager,
            used: Mutex::default(),
        }
    }

    /// Counts a request of a session until the permit is dropped. Fails if as many are in progress as may be. A session that is not
    /// known is counted nowhere: the request gets status 404.
    pub(super) fn begin(&self, id: &str) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
        let mut used = self.used();
        used.clock += 1;
        let now = used.clock;
        let Some(session) = used.sessions.get_mut(id) else {
            return Ok(None);
        };
        session.last = now;
        session.count += 1;
        Arc::clone(&session.requests).try_acquire_owned().map(Some)
    }

    /// Adds a session.
    pub(super) fn opened(&self, id: &str) {
        let mut used = self.used();
        used.clock += 1;
        let session = Session {
            requests: Arc::new(Semaphore::new(REQUESTS)),
            count: 0,
            last: used.clock,
        };
        used.sessions.insert(id.to_owned(), session);
    }

    /// Makes room for a session: closes the one that was not used for longest, first of those that had hardly a request. Returns `None`
    /// if all have requests in progress.
    pub(super) async fn make_room(&self) -> Option<Room<'_>> {
        loop {
            let open = self.manager.sessions.read().await;
            let closed = {
                let mut used = self.used();
                used.sessions.retain(|id, _| open.contains_key(id.as_str()));
                if used.sessions.len() + used.opening < SESSIONS {
                    used.opening += 1;
                    return Some(Room(self));
                }
                let idle = used
                    .sessions
                    .iter()
                    .filter(|(_, session)| session.requests.available_permits() == REQUESTS);
                // A client sends two messages to open a session.
                let first = idle.min_by_key(|(_, session)| (session.count > 1, session.last));
                let id = first.map(|(id, _)| id.clone())?;
                used.sessions.remove(&id);
                id
            };
            drop(open);
            // A session that ended meanwhile makes room too.
            let _ = self.manager.close_session(&closed.into()).await;
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
