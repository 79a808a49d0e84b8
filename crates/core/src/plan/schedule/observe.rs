//! The trait through which the schedule observes disk and agents, so that the schedule itself is pure.

use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::call::SentCall;
use crate::model::reason::Condition;
use crate::model::stage::Stage;
use crate::model::state::State;
use crate::plan::decide::RebuildPolicy;
use crate::plan::pending::Pending;
use crate::plan::scan::{BatchScan, StageScan};

/// The reason why an observation failed, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObserveError(pub String);

impl From<String> for ObserveError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// The reason why a batch cannot send its first request yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Waiting {
    /// An external agent, with the request.
    Agent(Box<SentCall>),
    /// Money: why the run does not pay for the call.
    Money(String),
    /// Not known before earlier stages or programs ran: it may not wait, under this condition.
    Unknown(Condition),
}

/// Returns what to rebuild of a batch, by its key.
pub type PolicyOf<'a> = dyn Fn(&str) -> RebuildPolicy + Sync + 'a;

/// Observes the disk and the agents for the schedule.
pub trait Observe {
    /// Checks which batches of a stage are up to date. `pending` has the changes that earlier stages may still make.
    ///
    /// # Errors
    /// If the batches cannot be listed, or a path leaves its folder.
    fn scan(
        &self,
        stage: &Stage,
        state: &State,
        pending: &Pending,
        policy: &PolicyOf<'_>,
    ) -> Result<StageScan, ObserveError>;

    /// Like [`Observe::scan`], for a stage that is not forced and has no pending changes. May leave out batches that are up to
    /// date.
    ///
    /// # Errors
    /// The errors of [`Observe::scan`].
    fn scan_outdated(&self, stage: &Stage, state: &State) -> Result<StageScan, ObserveError> {
        let needed = |_: &str| RebuildPolicy::Needed;
        self.scan(stage, state, &Pending::default(), &needed)
    }

    /// Returns the path and the digest of the stage's checkpoint file; `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn checkpoint(&self, stage: &Stage) -> Result<Option<(RelPath, Digest)>, ObserveError>;

    /// Returns the agents of a stage that are external, by name.
    fn external(&self, stage: &Stage) -> Vec<String>;

    /// Returns why the run pays for no call of the stage's agents; `None` if it may, or they are free.
    ///
    /// # Errors
    /// If an agent cannot be made ready.
    fn unpaid(&self, stage: &Stage) -> Result<Option<String>, ObserveError>;

    /// Returns the reason why each batch waits; `None` if it does not. `settled` is true if no earlier stage changes its inputs.
    ///
    /// # Errors
    /// If an agent cannot be made ready.
    fn waiting(
        &self,
        stage: &Stage,
        batches: &[&BatchScan],
        settled: bool,
    ) -> Result<Vec<Option<Waiting>>, ObserveError>;
}
