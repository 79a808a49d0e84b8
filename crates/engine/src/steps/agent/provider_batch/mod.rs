//! Provider batches: requests of all running attempts are queued, submitted together, and waited for.
//!
//! There is no extra thread: one of the waiting attempts works for all of them ([`driver`]) until it has its own result; then
//! another takes over.

mod driver;

use super::call_record::replayed_reply;
use super::costs::CallCosts;
use crate::steps::calls::{Calls, NextCall, Pace, ProviderBatchUpdate, ProviderBatches};
use crate::steps::command::Deadline;
use jiff::Timestamp;
use milepost_agents::api::BatchApi;
use milepost_agents::fault::CallFault;
use milepost_agents::http::{CallLimit, Cancelled};
use milepost_agents::request::Reply;
use milepost_core::model::agent::{Agent, Provider};
use milepost_core::model::batched::{CallId, LeftBatch, LeftCall};
use milepost_core::model::call::SentCall;
use milepost_core::model::outcome::Outcome;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting attempt checks whether it may continue to wait.
const WAKE: Duration = Duration::from_millis(500);

/// The context of an attempt for provider batches.
pub(crate) struct BatchClient<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) costs: &'a CallCosts,
    /// The step that asks.
    pub(crate) step: &'a str,
    pub(crate) api: &'a dyn BatchApi,
    pub(crate) calls: &'a dyn Calls,
    pub(crate) records: &'a dyn ProviderBatches,
    /// Returns true if waiting must end.
    pub(crate) stopped: Cancelled<'a>,
    /// Returns how many attempts run or are about to start. If all of them wait, no further request will come.
    pub(crate) running: &'a dyn Fn() -> usize,
    /// Receives each change in the state of a batch.
    pub(crate) updated: &'a dyn Fn(ProviderBatchUpdate),
    pub(crate) pace: Pace,
}

impl<'a> BatchClient<'a> {
    fn limit(&self, within: Duration) -> CallLimit<'a> {
        CallLimit {
            within,
            cancelled: self.stopped,
        }
    }
}

/// The result of a request.
pub(crate) enum BatchedResult {
    /// The reply or fault, as of a single call.
    Result(Result<Reply, CallFault>),
    /// The provider rejected the batch, after all tries.
    Refused(CallFault),
    /// The batch cannot be found. It may have cost money.
    Lost,
    /// It cannot be waited for now. The provider may still process it.
    Broken(Outcome),
}

/// How waiting ended.
pub(crate) enum WaitResult {
    /// It has a result.
    Finished(Box<BatchedResult>),
    Unsent,
    /// The provider processes it, or may do so.
    Left,
}

/// The queue of one agent's requests.
#[derive(Default)]
pub(crate) struct BatchQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// Whether the batches of earlier runs were read.
    is_open: bool,
    /// Whether an attempt works for the others.
    has_driver: bool,
    queued: VecDeque<QueuedRequest>,
    /// When the queue is submitted: if no request follows, and at the latest.
    quiet: Option<Deadline>,
    latest: Option<Deadline>,
    /// The provider rejected a batch; nothing is submitted before this.
    held: Option<Deadline>,
    refused: u32,
    in_flight: Vec<InFlightBatch>,
    /// Calls of earlier runs whose answers were not used yet.
    answered: Vec<LeftCall>,
    /// The provider's ids of known batches.
    known: BTreeSet<String>,
    /// Results by the number of the call, for attempts that wait.
    results: HashMap<u64, BatchedResult>,
    /// How many attempts wait for the budget that others reserve.
    waiting_for_budget: usize,
}

struct QueuedRequest {
    /// The id in the provider batch.
    id: String,
    number: u64,
    sent: SentCall,
    body: Vec<u8>,
}

struct InFlightBatch {
    batch: CallId,
    when: Timestamp,
    size: u64,
    /// The provider's id, or all candidates; empty if the batch must be searched for.
    ids: Vec<String>,
    requests: BTreeMap<String, BatchedCall>,
    due: Deadline,
    wait: Duration,
}

struct BatchedCall {
    left: LeftCall,
    /// The number of the call, if an attempt waits for it.
    awaited: Option<u64>,
}

impl InFlightBatch {
    fn awaited(&self) -> usize {
        let holders = self.requests.values();
        holders.filter(|holder| holder.awaited.is_some()).count()
    }

    fn of_left(left: LeftBatch, first: Duration) -> Self {
        let holder = |left: LeftCall| BatchedCall {
            left,
            awaited: None,
        };
        let calls = left.calls.into_iter();
        Self {
            batch: left.batch,
            when: left.when,
            size: left.size,
            ids: left.ids,
            requests: calls.map(|(id, call)| (id, holder(call))).collect(),
            due: Deadline::after(Duration::ZERO),
            wait: first,
        }
    }
}

/// Returns the name and address of the API, the only place that knows the batch.
pub(crate) fn place(agent: &Agent) -> String {
    match &agent.provider {
        Provider::Api(api) => {
            let url = api.base_url.as_deref().unwrap_or_default();
            format!("{} {url}", api.kind.name()).trim_end().to_owned()
        }
        _ => String::new(),
    }
}

impl BatchQueue {
    /// Queues a request and returns the number of its call. If an earlier run sent the same request and its answer was not used, that
    /// call continues as this one.
    ///
    /// # Errors
    /// When the request must not be sent or cannot be recorded.
    pub(crate) fn enqueue(
        &self,
        client: &BatchClient<'_>,
        sent: &mut SentCall,
        body: Vec<u8>,
    ) -> Result<u64, Outcome> {
        let mut state = self.opened(client)?;
        let at = nearest(
            state.answered.iter().map(|left| &left.sent).enumerate(),
            sent,
        );
        if let Some(at) = at {
            let left = state.answered.swap_remove(at);
            reserve_as(sent, &left.sent);
            let own = client.records.take_over(&left, sent, &body)?;
            if let Some(response) = &left.response {
                let reply = replayed_reply(response);
                state
                    .results
                    .insert(own.number, BatchedResult::Result(Ok(reply)));
            }
            return Ok(own.number);
        }
        let in_flight = state.in_flight.iter().enumerate();
        let free = in_flight.flat_map(|(at, under)| {
            let holders = under.requests.iter();
            let holders = holders.filter(|(_, holder)| holder.awaited.is_none());
            holders.map(move |(id, holder)| ((at, id.clone()), &holder.left.sent))
        });
        if let Some((at, id)) = nearest(free, sent)
            && let Some(holder) = state.in_flight[at].requests.get_mut(&id)
        {
            reserve_as(sent, &holder.left.sent);
            let own = client.records.take_over(&holder.left, sent, &body)?;
            let number = own.number;
            holder.awaited = Some(number);
            holder.left = LeftCall {
                call: own,
                sent: sent.clone(),
                response: None,
            };
            self.changed.notify_all();
            return Ok(number);
        }
        // Other attempts need not wait for the disk.
        drop(state);
        let number = client.calls.sending(NextCall {
            sent,
            body: &body,
            step: client.step,
            costs: client.costs,
            stopped: client.stopped,
            waits: &|begins| {
                let mut state = self.lock();
                state.waiting_for_budget = if begins {
                    state.waiting_for_budget + 1
                } else {
                    state.waiting_for_budget.saturating_sub(1)
                };
                self.changed.notify_all();
            },
        })?;
        let item = QueuedRequest {
            // The id is unique across runs and workspaces, so that a batch whose own id was lost can be recognized.
            id: format!("{}-{number}", client.calls.run()),
            number,
            sent: sent.clone(),
            body,
        };
        let mut state = self.lock();
        state.queued.push_back(item);
        state.quiet = Some(Deadline::after(client.pace.quiet));
        let latest = client.pace.quiet.saturating_mul(30);
        state.latest.get_or_insert_with(|| Deadline::after(latest));
        self.changed.notify_all();
        Ok(number)
    }

    /// Waits for the result of the request with this number.
    pub(crate) fn wait(
        &self,
        client: &BatchClient<'_>,
        number: u64,
        until: Deadline,
    ) -> WaitResult {
        let mut state = self.lock();
        loop {
            if let Some(results) = state.results.remove(&number) {
                return WaitResult::Finished(Box::new(results));
            }
            if (client.stopped)() || until.is_over() {
                return leave(&mut state, number);
            }
            if state.has_driver {
                let waited = self.changed.wait_timeout(state, WAKE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.has_driver = true;
            drop(state);
            let guard = DriverGuard(self);
            self.drive(client, number, until);
            drop(guard);
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state, with the batches of earlier runs.
    fn opened(&self, client: &BatchClient<'_>) -> Result<MutexGuard<'_, QueueState>, Outcome> {
        let mut state = self.lock();
        if !state.is_open {
            let left = client
                .records
                .left(&client.agent.name, &place(client.agent))?;
            let first = client.pace.first;
            let batches = left.batches.into_iter();
            state.in_flight = batches
                .map(|left| InFlightBatch::of_left(left, first))
                .collect();
            state.answered = left.answered;
            state.known = left.known;
            state.is_open = true;
            if !state.in_flight.is_empty() {
                let batches = state.in_flight.len();
                (client.updated)(ProviderBatchUpdate::Resumed { batches });
            }
        }
        Ok(state)
    }
}

/// Lets another attempt take over when dropped, even after a panic.
struct DriverGuard<'a>(&'a BatchQueue);

impl Drop for DriverGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().has_driver = false;
        self.0.changed.notify_all();
    }
}

/// Removes an attempt that stops waiting.
fn leave(state: &mut QueueState, number: u64) -> WaitResult {
    if let Some(at) = state.queued.iter().position(|item| item.number == number) {
        state.queued.remove(at);
        return WaitResult::Unsent;
    }
    for under in &mut state.in_flight {
        for holder in under.requests.values_mut() {
            if holder.awaited == Some(number) {
                holder.awaited = None;
            }
        }
    }
    WaitResult::Left
}

/// Reserves what an earlier run reserved for the call.
fn reserve_as(sent: &mut SentCall, earlier: &SentCall) {
    (sent.most_input, sent.reserved) = (earlier.most_input, earlier.reserved);
}

/// Returns a call with the same bytes, preferably of the same batch.
fn nearest<'a, At>(calls: impl Iterator<Item = (At, &'a SentCall)>, sent: &SentCall) -> Option<At> {
    let same = calls.filter(|(_, other)| other.request == sent.request);
    let distance = |other: &SentCall| {
        (
            other.stage != sent.stage || other.batch != sent.batch,
            other.attempt,
        )
    };
    same.min_by_key(|(_, other)| distance(other))
        .map(|(at, _)| at)
}
