//! The records behind agents: answers that are known, the budget, calls, and provider batches.

use super::agent::costs::CallCosts;
use super::agent::request_parts::RequestParts;
use jiff::Timestamp;
use milepost_agents::http::Cancelled;
use milepost_core::base::digest::Digest;
use milepost_core::base::redact::Redactor;
use milepost_core::model::batched::{CallId, Left, LeftCall, Submitting};
use milepost_core::model::call::{CallResponse, SentCall};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::AnswersOf;
use serde_json::Value;
use std::time::Duration;

/// The records behind a step that asks an agent: known answers, the budget, and every call.
pub(crate) trait Calls: Sync {
    /// Returns the records of provider batches; `None`: each request is sent on its own.
    fn batched(&self) -> Option<&dyn ProviderBatches> {
        None
    }

    /// Returns the known answers at these addresses, each with its run and call. With `since`, only answers of these runs
    /// count.
    ///
    /// # Errors
    /// When the answers cannot be read.
    fn known(
        &self,
        addresses: &[Digest],
        since: Option<&[String]>,
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome>;

    /// Returns the known answers of external agents, which count even in a run that asks everything again.
    ///
    /// # Errors
    /// When the answers cannot be read.
    fn kept(&self, addresses: &[Digest]) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        self.known(addresses, None)
    }

    /// Returns the id of the run.
    fn run(&self) -> &str;

    /// Returns true if a budget limits calls.
    fn is_limited(&self) -> bool;

    /// Claims questions, and returns those that no other batch or run is asking. Of the others, some may have been answered just now.
    /// With `is_fresh`, other runs do not matter.
    ///
    /// # Errors
    /// When the disk fails.
    fn claim(&self, addresses: &[Digest], is_fresh: bool) -> Result<Vec<Digest>, Outcome>;

    /// Releases claimed questions.
    fn release(&self, addresses: &[Digest]);

    /// Waits until no batch claims a question, nor another run unless `is_fresh`, or `stopped` returns true. Calls `waits` with
    /// the other run if it waits for one, the first time.
    ///
    /// # Errors
    /// When the disk fails.
    fn wait(
        &self,
        address: Digest,
        is_fresh: bool,
        stopped: Cancelled<'_>,
        waits: &dyn Fn(&str),
    ) -> Result<(), Outcome>;

    /// Keeps the valid answers of one call durably: after a kill all of them exist, or none.
    ///
    /// # Errors
    /// When the disk fails.
    fn keep(&self, answers: Vec<ValidAnswer>) -> Result<(), Outcome>;

    /// Receives the next request in parts. A dry run overrides this.
    fn about_to_ask(&self, _parts: &dyn Fn() -> RequestParts) {}

    /// Records a call that is about to be sent, and returns its number. If the budget does not allow it beside calls in flight, it
    /// waits for them. The record contains the reservation.
    ///
    /// # Errors
    /// When the budget does not allow the call, it cannot be recorded, or waiting is stopped. It must not be sent then.
    fn sending(&self, call: NextCall<'_>) -> Result<u64, Outcome>;

    /// Notes that this run will not learn what a call costs, unless it knows already: no other call waits for that.
    fn over(&self, _number: u64) {}

    /// Records the response to a call, and returns it without keys.
    ///
    /// # Errors
    /// When the disk fails.
    fn received(
        &self,
        number: u64,
        sent: &SentCall,
        response: CallResponse,
        raw: &[u8],
    ) -> Result<CallResponse, Outcome>;

    /// Returns what removes API keys.
    fn redactor(&self) -> &Redactor;
}

/// The record of provider batches, which outlive runs. Every method returns after its record is durable.
pub(crate) trait ProviderBatches {
    /// Returns the batches of an agent that earlier runs left at a provider.
    ///
    /// # Errors
    /// When the records cannot be read.
    fn left(&self, agent: &str, place: &str) -> Result<Left, Outcome>;

    /// Records that this run continues a call of an earlier run, and returns its new id. Its cost is already paid or reserved.
    ///
    /// # Errors
    /// When the disk fails.
    fn take_over(&self, left: &LeftCall, sent: &SentCall, body: &[u8]) -> Result<CallId, Outcome>;

    /// Records a batch that is about to be submitted, and returns its id and the time.
    ///
    /// # Errors
    /// When the disk fails. The batch must not be submitted then.
    fn submitting(&self, batch: &Submitting) -> Result<(CallId, Timestamp), Outcome>;

    /// Records the provider's id of a batch, or all ids that it may have.
    ///
    /// # Errors
    /// When the disk fails.
    fn submitted(&self, batch: &CallId, ids: &[String]) -> Result<(), Outcome>;

    /// Records that a batch is finished or lost.
    ///
    /// # Errors
    /// When the disk fails.
    fn over(&self, batch: &CallId) -> Result<(), Outcome>;

    /// Records the response to a call that no batch waits for.
    ///
    /// # Errors
    /// When the disk fails.
    fn received_late(
        &self,
        left: &LeftCall,
        response: &CallResponse,
        raw: &[u8],
    ) -> Result<(), Outcome>;

    /// Records that the answers of a call were checked, and the valid ones kept.
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
        /// How many batches.
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

/// A call that is about to be sent.
pub(crate) struct NextCall<'a> {
    /// The record, with the maximum of input tokens that the request can have.
    pub(crate) sent: &'a mut SentCall,
    pub(crate) body: &'a [u8],
    /// The step that asks.
    pub(crate) step: &'a str,
    /// The costs of its agent's calls.
    pub(crate) costs: &'a CallCosts,
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// Called with `true` when it begins to wait for the budget, and with `false` afterwards.
    pub(crate) waits: &'a dyn Fn(bool),
}

/// A call whose cost this run learns, until it is dropped.
pub(crate) struct OpenCall<'a> {
    pub(crate) calls: &'a dyn Calls,
    pub(crate) number: u64,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.calls.over(self.number);
    }
}

pub(crate) struct ValidAnswer {
    /// The address of its question.
    pub(crate) address: Digest,
    pub(crate) answer: Value,
    pub(crate) schema: Option<Digest>,
    /// The agent that gave it, in one line.
    pub(crate) agent: String,
    /// The number of its call.
    pub(crate) call: u64,
    /// True if all workspaces may use it; false if only its batch may.
    pub(crate) is_shared: bool,
}

/// When provider batches are submitted and polled, how long a retry waits, and which calls are slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The queued requests are submitted if no other follows within this time.
    pub(crate) quiet: Duration,
    /// The wait before the first poll of a batch; each later wait is 1.5 times as long.
    pub(crate) first: Duration,
    /// The longest wait between polls.
    pub(crate) longest: Duration,
    /// The longest wait before a request is sent again.
    pub(crate) retry: Duration,
    /// The mean duration from which calls are slow.
    pub(crate) slow: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(5),
            first: Duration::from_secs(5),
            longest: Duration::from_mins(1),
            retry: Duration::MAX,
            slow: Duration::from_secs(2),
        }
    }
}

impl Pace {
    /// Returns the intervals that a test sets in milliseconds. Release builds ignore the setting.
    pub(crate) fn from_setting(millis: Option<&str>) -> Self {
        let wanted = millis.filter(|_| cfg!(debug_assertions));
        let wanted = wanted.and_then(|millis| millis.parse().ok());
        match wanted.map(Duration::from_millis) {
            Some(wait) => Self {
                quiet: Duration::from_secs(1),
                first: wait,
                longest: wait,
                retry: wait,
                slow: Duration::ZERO,
            },
            None => Self::default(),
        }
    }
}
