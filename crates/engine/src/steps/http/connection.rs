//! Connections to servers. After a refusal, one call tries again while the others wait for it.

use milepost_agents::http::{SharedHttp, origin, shown};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::step::Text;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The HTTP client of a run, and the connections of its `http` steps.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) http: SharedHttp,
    connections: Mutex<BTreeMap<String, Arc<Connection>>>,
}

/// The connection to a server.
pub(crate) struct Connection {
    /// Scheme, host and port.
    server: String,
    state: Mutex<ConnectionState>,
    changed: Condvar,
}

#[derive(Default)]
struct ConnectionState {
    /// Advice until a call reaches the server.
    check: String,
    is_refused: bool,
    is_probed: bool,
    /// The outcome of the call that gave up.
    given_up: Option<Outcome>,
}

/// The right to try again, until it is dropped.
pub(crate) struct Probe(Arc<Connection>);

impl Client {
    /// Returns the connection to the server of a URL that a step declares with this text.
    pub(crate) fn connection(&self, url: &str, declared: &Text) -> Arc<Connection> {
        let mut all = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let made = || Connection::new(url, "http", Some(declared));
        Arc::clone(all.entry(server(url)).or_insert_with(made))
    }
}

/// Returns the outcome of a batch that waits for a server, which refuses connections.
pub(crate) fn unreachable(outcome: &Outcome) -> Outcome {
    let message = format!("waiting for {}", outcome.message);
    Outcome::new(OutcomeKind::Unreachable, message).for_good()
}

fn server(url: &str) -> String {
    origin(url).unwrap_or_else(|| shown(url))
}

impl Connection {
    /// `key` declares the URL by `declared`.
    pub(crate) fn new(url: &str, key: &str, declared: Option<&Text>) -> Arc<Self> {
        let check = |text: &Text| format!("check `{key} = \"{}\"`, or ", shown(&text.source));
        let check = declared.map(check).unwrap_or_default();
        let state = ConnectionState {
            check,
            ..ConnectionState::default()
        };
        Arc::new(Self {
            server: server(url),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the call that tries again. Returns the right to do so if the connection is refused and no call does.
    ///
    /// # Errors
    /// The outcome of a call that gave up.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Option<Probe>, Outcome> {
        let waits = |state: &mut ConnectionState| state.is_refused && state.is_probed;
        let state = self.changed.wait_while(self.state(), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match &state.given_up {
            _ if !state.is_refused => return Ok(None),
            Some(outcome) => return Err(outcome.clone()),
            None => state.is_probed = true,
        }
        Ok(Some(Probe(Arc::clone(self))))
    }

    /// Adds advice to the outcome of a call that was refused.
    pub(crate) fn advise(&self, mut outcome: Outcome) -> Outcome {
        let (server, check) = (&self.server, &self.state().check);
        let advice = format!(": {check}run again when {server} is reachable");
        outcome.message.push_str(&advice);
        outcome
    }

    /// Notes whether a call was refused.
    pub(crate) fn note(&self, is_refused: bool) {
        let mut state = self.state();
        state.is_refused = is_refused;
        if !is_refused {
            state.check.clear();
            state.given_up = None;
        }
        self.changed.notify_all();
    }
}

impl Probe {
    /// Ends all calls to the server with this outcome, and returns it with advice.
    pub(crate) fn give_up(self, outcome: Outcome) -> Outcome {
        let outcome = self.0.advise(outcome).for_good();
        self.0.state().given_up = Some(outcome.clone());
        outcome
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.state().is_probed = false;
        self.0.changed.notify_all();
    }
}
