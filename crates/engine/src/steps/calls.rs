//! The records behind agents: answers that are known, the budget, calls, and provider batches.

use super::agent::parts::Parts;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::batched::{CallId, Left, LeftCall, Submitting};
use milepost_core::model::call::{Heard, Sent};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::AnswersOf;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

/// What stands behind a step that asks an agent: answers that are known, money, and the record of every call.
pub(crate) trait Calls: Sync {
    /// What stands behind agents whose requests go in batches; none: they are treated as if each went by itself.
    fn batched(&self) -> Option<&dyn Batched> {
        None
    }

    /// The answers that are kept at addresses, each with the run and the call that it came with. With `since`, only those that
    /// came in one of these runs.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    fn known(
        &self,
        addresses: &[Digest],
        since: Option<&[String]>,
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome>;

    /// The same where nobody can be asked once more: what is kept counts also in a run that asks everything again.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    fn kept(&self, addresses: &[Digest]) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        self.known(addresses, None)
    }

    /// The run that calls.
    fn run(&self) -> &str;

    /// Takes a question for oneself; no when another batch of the run is asking it.
    fn claim(&self, address: Digest) -> bool;

    /// Leaves questions that were claimed to others.
    fn release(&self, addresses: &[Digest]);

    /// Waits until nobody claims a question, or `stopped`.
    fn wait(&self, address: Digest, stopped: &dyn Fn() -> bool);

    /// Keeps an answer that is valid, durably.
    ///
    /// # Errors
    /// When the disk fails.
    fn keep(&self, answer: Valid) -> Result<(), Outcome>;

    /// Keeps answers that came together, durably: after a kill all of them are there, or none.
    ///
    /// # Errors
    /// When the disk fails.
    fn keep_all(&self, answers: Vec<Valid>) -> Result<(), Outcome> {
        answers.into_iter().try_for_each(|answer| self.keep(answer))
    }

    /// What the request that follows asks, in parts, for whoever only wants to know that.
    fn asking(&self, _parts: &dyn Fn() -> Parts) {}

    /// Records a call that is about to be sent, and gives its number.
    ///
    /// # Errors
    /// When it would cost more than may be spent, or could not be recorded: it is then not sent.
    fn sending(&self, sent: &Sent, body: &[u8]) -> Result<u64, Outcome>;

    /// Records what was heard of a call, and gives it as it is recorded: without keys.
    ///
    /// # Errors
    /// When the disk fails.
    fn heard(&self, number: u64, sent: &Sent, heard: Heard, raw: &[u8]) -> Result<Heard, Outcome>;

    /// What somebody who has a key said, without it.
    fn without_keys<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]>;
}

/// What stands behind an agent whose requests go in batches: the record of what is under way at its provider, over runs that end in
/// between. All of it is durable when it is returned.
pub(crate) trait Batched {
    /// What earlier runs left of an agent's batches at a place.
    ///
    /// # Errors
    /// When the records cannot be read.
    fn left(&self, agent: &str, place: &str) -> Result<Left, Outcome>;

    /// Records that a call of an earlier run goes on as one of this run, and gives which. It is paid, or was reserved then.
    ///
    /// # Errors
    /// When the disk fails.
    fn take_over(&self, left: &LeftCall, sent: &Sent, body: &[u8]) -> Result<CallId, Outcome>;

    /// Records a batch that is about to be submitted; gives which it is, and the time.
    ///
    /// # Errors
    /// When the disk fails: it is then not submitted.
    fn submitting(&self, batch: &Submitting) -> Result<(CallId, Timestamp), Outcome>;

    /// Records the provider's id of a batch, or those of which it is one.
    ///
    /// # Errors
    /// When the disk fails.
    fn submitted(&self, batch: &CallId, ids: &[String]) -> Result<(), Outcome>;

    /// Records that nothing more will be heard of a batch.
    ///
    /// # Errors
    /// When the disk fails.
    fn over(&self, batch: &CallId) -> Result<(), Outcome>;

    /// Records what was heard of a call for which nobody waits.
    ///
    /// # Errors
    /// When the disk fails.
    fn heard_late(&self, left: &LeftCall, heard: &Heard, raw: &[u8]) -> Result<(), Outcome>;

    /// Records that the answer of a call was judged, and kept as far as it is valid.
    ///
    /// # Errors
    /// When the disk fails.
    fn used(&self, number: u64) -> Result<(), Outcome>;
}

/// A change in the state of a provider batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderBatchUpdate {
    /// Batches that earlier runs submitted are polled again.
    Resumed {
        /// How many.
        batches: usize,
    },
    /// Requests were submitted.
    Submitted {
        /// The provider's id of the batch.
        id: String,
        /// How many requests are in it.
        requests: usize,
    },
    /// The results were fetched.
    Ended {
        /// The provider's ids of the batch.
        ids: Vec<String>,
        /// How many requests were answered.
        answered: usize,
        /// How many requests were in it.
        requests: usize,
    },
}

/// An answer that is valid.
pub(crate) struct Valid {
    /// What it is to.
    pub(crate) address: Digest,
    /// The answer.
    pub(crate) answer: Value,
    /// The digest of the schema that it is valid by.
    pub(crate) schema: Option<Digest>,
    /// The agent, in one line.
    pub(crate) agent: String,
    /// The call that it came with.
    pub(crate) call: u64,
    /// Whether all workspaces may use it, or its batch only.
    pub(crate) is_shared: bool,
}

/// When batches of requests are submitted and looked after, and how long a retry waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// No further request came for so long: those that are there are submitted.
    pub(crate) quiet: Duration,
    /// Until the provider is first asked how far a batch is; each further wait is half as long again.
    pub(crate) first: Duration,
    /// The longest of these waits.
    pub(crate) longest: Duration,
    /// The longest wait before a request is sent again.
    pub(crate) retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(5),
            first: Duration::from_secs(5),
            longest: Duration::from_mins(1),
            retry: Duration::MAX,
        }
    }
}

impl Pace {
    /// Waits of so many milliseconds, if a test wants it. Release builds wait as long as they do.
    pub(crate) fn from_setting(millis: Option<&str>) -> Self {
        let wanted = millis.filter(|_| cfg!(debug_assertions));
        let wanted = wanted.and_then(|millis| millis.parse().ok());
        match wanted.map(Duration::from_millis) {
            Some(wait) => Self {
                quiet: Duration::from_secs(1),
                first: wait,
                longest: wait,
                retry: wait,
            },
            None => Self::default(),
        }
    }
}
