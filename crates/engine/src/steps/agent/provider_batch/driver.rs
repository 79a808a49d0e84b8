//! The work for all attempts that wait for provider batches: submit queued requests, find a batch whose id was lost, poll,
//! fetch results.

use super::{
    BatchClient, BatchQueue, BatchedCall, BatchedResult, InFlightBatch, QueueState, QueuedRequest,
    place,
};
use crate::steps::agent::call_record::{TRIES, fault_outcome, recorded};
use crate::steps::calls::ProviderBatchUpdate;
use crate::steps::command::Deadline;
use jiff::SignedDuration;
use milepost_agents::api::{BatchFault, BatchProgress, BatchResult, SubmittedBatch};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::http::CallLimit;
use milepost_agents::policy::{Next, after, is_final};
use milepost_core::base::digest::Digest;
use milepost_core::model::batched::{CallId, LeftCall, Submitting};
use milepost_core::model::call::CallResponse;
use milepost_core::model::money::NanoUsd;
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

/// How often the driver checks whether the run is stopped.
const TICK: Duration = Duration::from_millis(25);

/// The time limits to submit a batch, to poll it, and to fetch its results.
const SUBMIT: Duration = Duration::from_mins(10);
const ASK: Duration = Duration::from_mins(1);
const RESULTS_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a stopped run waits for a batch that is being submitted.
const PATIENCE: Duration = Duration::from_secs(3);

/// By how much the provider's creation time of a batch may differ from its record. Submitting can take [`SUBMIT`].
const EARLY: SignedDuration = SignedDuration::from_mins(2);
const LATE: SignedDuration = SignedDuration::from_mins(15);

/// Bytes around each request in a batch.
const AROUND: usize = 128;

/// The next action of the driver.
enum NextAction {
    Submit(CallId, Vec<QueuedRequest>),
    Look(CallId),
    Poll(CallId, Vec<String>),
    Wait(Duration),
}

impl BatchQueue {
    /// Works until the request with this number has a result, or waiting ends.
    pub(super) fn drive(&self, client: &BatchClient<'_>, number: u64, until: Deadline) {
        loop {
            let mut state = self.lock();
            if state.results.contains_key(&number) || (client.stopped)() || until.is_over() {
                return;
            }
            match next(&mut state, client) {
                NextAction::Wait(wait) => {
                    let waited = self.changed.wait_timeout(state, wait);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                perform => {
                    drop(state);
                    self.perform(client, perform);
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Polls once every batch that an earlier run left, and fetches the results of finished ones, even if no batch needs them.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(crate) fn sweep(
        &self,
        client: &BatchClient<'_>,
    ) -> Result<(), milepost_core::model::outcome::Outcome> {
        let state = self.opened(client)?;
        let in_flight = state.in_flight.iter();
        let all: Vec<CallId> = in_flight.map(|under| under.batch.clone()).collect();
        drop(state);
        for batch in all {
            if self.ids(&batch).is_empty() {
                self.look(client, &batch);
            }
            let ids = self.ids(&batch);
            if !ids.is_empty() && !(client.stopped)() {
                self.poll(client, &batch, ids);
            }
        }
        Ok(())
    }

    fn ids(&self, batch: &CallId) -> Vec<String> {
        let mut state = self.lock();
        let under = find(&mut state, batch);
        under.map(|under| under.ids.clone()).unwrap_or_default()
    }

    fn perform(&self, client: &BatchClient<'_>, perform: NextAction) {
        match perform {
            NextAction::Submit(batch, items) => self.submit(client, &batch, items),
            NextAction::Look(batch) => self.look(client, &batch),
            NextAction::Poll(batch, ids) => self.poll(client, &batch, ids),
            NextAction::Wait(_) => {}
        }
    }

    fn submit(&self, client: &BatchClient<'_>, batch: &CallId, mut items: Vec<QueuedRequest>) {
        let requests: Vec<(String, Vec<u8>)> = items
            .iter_mut()
            .map(|item| (item.id.clone(), std::mem::take(&mut item.body)))
            .collect();
        // A stopped run waits a little for a submission, so that the next run need not search for the batch.
        let patience = OnceLock::new();
        let stopped = || {
            let ends = || Deadline::after(PATIENCE);
            (client.stopped)() && patience.get_or_init(ends).is_over()
        };
        let limit = CallLimit {
            within: SUBMIT,
            cancelled: &stopped,
        };
        match client.api.submit(&requests, limit) {
            Ok(id) => {
                // The id is recorded before anything else.
                let kept = client.records.submitted(batch, std::slice::from_ref(&id));
                (client.updated)(ProviderBatchUpdate::Submitted {
                    id: id.clone(),
                    requests: requests.len(),
                });
                let mut state = self.lock();
                state.refused = 0;
                state.known.insert(id.clone());
                if let Some(under) = find(&mut state, batch) {
                    under.ids = vec![id];
                    under.due = Deadline::after(client.pace.first);
                }
                drop(state);
                if let Err(outcome) = kept {
                    self.give_up_waiting(batch, |_| BatchedResult::Broken(outcome.clone()));
                }
            }
            // The provider may have created the batch. It is searched for, by the next run if this one is stopped.
            Err(fault) if is_doubtful(fault.kind) => {
                let mut state = self.lock();
                if let Some(under) = find(&mut state, batch) {
                    under.due = Deadline::after(Duration::ZERO);
                }
            }
            Err(fault) => {
                for (item, (_, body)) in items.iter_mut().zip(requests) {
                    item.body = body;
                }
                self.put_back(client, batch, items, &fault);
            }
        }
    }

    /// Queues rejected requests again, or reports them as refused.
    fn put_back(
        &self,
        client: &BatchClient<'_>,
        batch: &CallId,
        items: Vec<QueuedRequest>,
        fault: &CallFault,
    ) {
        let over = client.records.over(batch);
        let mut state = self.lock();
        let Some(at) = state.in_flight.iter().position(|it| it.batch == *batch) else {
            return;
        };
        let under = state.in_flight.remove(at);
        state.refused += 1;
        let next = after(fault, state.refused, 0.5);
        let tries = client.agent.limits.tries.unwrap_or(TRIES);
        let again = match next {
            Next::Retry { wait } if state.refused < tries && over.is_ok() => Some(wait),
            _ => None,
        };
        let mut unsent = Vec::new();
        for item in items.into_iter().rev() {
            let holder = under.requests.get(&item.id);
            match (holder.and_then(|holder| holder.awaited), &over) {
                (Some(_), _) if again.is_some() => state.queued.push_front(item),
                (Some(number), Ok(())) => {
                    let results = BatchedResult::Refused(fault.clone());
                    state.results.insert(number, results);
                }
                (Some(number), Err(outcome)) => {
                    let results = BatchedResult::Broken(outcome.clone());
                    state.results.insert(number, results);
                }
                (None, _) => unsent.extend(holder.map(|holder| holder.left.clone())),
            }
        }
        match again {
            Some(wait) => state.held = Some(Deadline::after(wait)),
            None => state.refused = 0,
        }
        drop(state);
        for left in unsent {
            // A call that cannot be recorded counts as spent.
            let _ = client
                .records
                .received_late(&left, &CallResponse::never_sent(), b"");
        }
    }

    /// Searches the provider's recent batches for one whose id was lost. Candidates are polled; the ids in the results show
    /// which one it is.
    fn look(&self, client: &BatchClient<'_>, batch: &CallId) {
        let recent = client.api.recent(client.limit(ASK));
        let mut state = self.lock();
        let known = state.known.clone();
        let Some(under) = find(&mut state, batch) else {
            return;
        };
        let found = match recent {
            Ok(list) => list,
            Err(fault) if fault.kind == FaultKind::Cancelled => return,
            // The provider has no such list.
            Err(fault) if is_final(fault.kind) => Vec::new(),
            Err(fault) => {
                drop(state);
                return self.poll_later(client, batch, &fault);
            }
        };
        let may_be_it = |known_batch: &SubmittedBatch| {
            let made = known_batch.created.duration_since(under.when);
            !known.contains(&known_batch.id)
                && (-EARLY..=LATE).contains(&made)
                && (known_batch.requests == under.size || known_batch.requests == 0)
        };
        let ids: Vec<String> = found
            .into_iter()
            .filter(may_be_it)
            .map(|known_batch| known_batch.id)
            .collect();
        under.ids.clone_from(&ids);
        under.due = Deadline::after(Duration::ZERO);
        drop(state);
        if ids.is_empty() {
            self.mark_lost(client, batch);
        } else if let Err(outcome) = client.records.submitted(batch, &ids) {
            self.give_up_waiting(batch, |_| BatchedResult::Broken(outcome.clone()));
        }
    }

    fn poll(&self, client: &BatchClient<'_>, batch: &CallId, ids: Vec<String>) {
        let mut still = Vec::new();
        for id in &ids {
            let results = match client.api.poll(id, client.limit(ASK)) {
                Ok(BatchProgress::Running { .. }) => {
                    still.push(id.clone());
                    continue;
                }
                Ok(BatchProgress::Ended) => client.api.results(id, client.limit(RESULTS_TIMEOUT)),
                Ok(BatchProgress::Refused(fault)) => {
                    let fault = free(fault);
                    let all = |_: &str| Err(BatchFault::Call(fault.clone()));
                    return self.deliver(client, batch, all);
                }
                Err(fault) => Err(fault),
            };
            match results {
                Ok(results) => {
                    let mut results: HashMap<String, BatchResult> = results.into_iter().collect();
                    if self.is_it(batch, &results) || (results.is_empty() && ids.len() == 1) {
                        let expired = || Err(BatchFault::Expired);
                        return self.deliver(client, batch, |id| {
                            results.remove(id).unwrap_or_else(expired)
                        });
                    }
                    // It is another batch.
                }
                Err(fault) if fault.kind == FaultKind::Cancelled => return,
                // The provider has no such batch.
                Err(fault) if is_final(fault.kind) => {}
                Err(fault) => return self.poll_later(client, batch, &fault),
            }
        }
        if still.is_empty() {
            return self.mark_lost(client, batch);
        }
        let mut state = self.lock();
        if let Some(under) = find(&mut state, batch) {
            under.ids = still;
            under.due = Deadline::after(under.wait);
            under.wait = longer(under.wait, client.pace.longest);
        }
    }

    /// Returns true if the results contain one of the batch's requests.
    fn is_it(&self, batch: &CallId, results: &HashMap<String, BatchResult>) -> bool {
        let mut state = self.lock();
        let under = find(&mut state, batch);
        under.is_some_and(|under| under.requests.keys().any(|id| results.contains_key(id)))
    }

    /// Schedules another poll. Attempts that wait fail if the fault will not pass.
    fn poll_later(&self, client: &BatchClient<'_>, batch: &CallId, fault: &CallFault) {
        let mut state = self.lock();
        if let Some(under) = find(&mut state, batch) {
            let wait = fault.retry_after.unwrap_or_default().max(under.wait);
            under.due = Deadline::after(wait);
            under.wait = longer(under.wait, client.pace.longest);
        }
        drop(state);
        if matches!(fault.kind, FaultKind::Auth | FaultKind::Money) {
            let outcome = fault_outcome(client.agent, fault).for_good();
            self.give_up_waiting(batch, |_| BatchedResult::Broken(outcome.clone()));
        }
    }

    /// Gives up a batch. Its possible cost stays reserved, and attempts that wait ask again.
    fn mark_lost(&self, client: &BatchClient<'_>, batch: &CallId) {
        let results = match client.records.over(batch) {
            Ok(()) => |_: &BatchedCall| BatchedResult::Lost,
            Err(outcome) => {
                return self.give_up_waiting(batch, |_| BatchedResult::Broken(outcome.clone()));
            }
        };
        self.give_up_waiting(batch, results);
        let mut state = self.lock();
        state.in_flight.retain(|under| under.batch != *batch);
    }

    /// Ends the wait of all attempts for a batch.
    fn give_up_waiting(&self, batch: &CallId, results: impl Fn(&BatchedCall) -> BatchedResult) {
        let mut state = self.lock();
        let mut told = Vec::new();
        if let Some(under) = find(&mut state, batch) {
            for holder in under.requests.values_mut() {
                if let Some(number) = holder.awaited.take() {
                    told.push((number, results(holder)));
                }
            }
        }
        state.results.extend(told);
    }

    /// Hands each result to the attempt that waits for it, and records the others.
    fn deliver(
        &self,
        client: &BatchClient<'_>,
        batch: &CallId,
        mut result: impl FnMut(&str) -> BatchResult,
    ) {
        let mut late = Vec::new();
        let mut state = self.lock();
        let Some(at) = state.in_flight.iter().position(|it| it.batch == *batch) else {
            return;
        };
        let under = state.in_flight.remove(at);
        let (all, mut answered) = (under.requests.len(), 0);
        for (id, holder) in under.requests {
            let result = result(&id).map_err(fault_of);
            answered += usize::from(result.is_ok());
            match holder.awaited {
                Some(number) => drop(state.results.insert(number, BatchedResult::Result(result))),
                None => late.push((holder.left, result)),
            }
        }
        drop(state);
        self.changed.notify_all();
        (client.updated)(ProviderBatchUpdate::Ended {
            ids: under.ids,
            answered,
            requests: all,
        });
        for (left, result) in late {
            let (response, raw) = recorded(client.costs, &left.sent, &result, 0);
            // A result that cannot be recorded is fetched again by the next run.
            if client.records.received_late(&left, &response, raw).is_ok() && result.is_ok() {
                let response = Some(response);
                self.lock().answered.push(LeftCall { response, ..left });
            }
        }
    }
}

/// Returns the next action.
fn next(state: &mut QueueState, client: &BatchClient<'_>) -> NextAction {
    let mut wait = TICK;
    let is_over = |deadline: &Option<Deadline>| deadline.as_ref().is_none_or(Deadline::is_over);
    if !state.queued.is_empty() && is_over(&state.held) {
        let limit = client.api.limit();
        let waiting: usize = state.in_flight.iter().map(InFlightBatch::awaited).sum();
        let is_full = state.queued.len() >= limit.requests || {
            let bytes = state.queued.iter().map(|item| item.body.len() + AROUND);
            bytes.sum::<usize>() >= limit.bytes
        };
        let waiting = state.queued.len() + waiting + state.waiting_for_budget;
        let all_wait = || waiting >= (client.running)();
        if is_full || is_over(&state.quiet) || is_over(&state.latest) || all_wait() {
            return take(state, client);
        }
        wait = wait.min(state.quiet.map_or(TICK, |quiet| quiet.left()));
    }
    match state.in_flight.iter().find(|under| under.due.is_over()) {
        Some(under) if under.ids.is_empty() => NextAction::Look(under.batch.clone()),
        Some(under) => NextAction::Poll(under.batch.clone(), under.ids.clone()),
        None => NextAction::Wait(wait.max(Duration::from_millis(1))),
    }
}

/// Takes queued requests that fit into one batch, and records that they are about to be submitted.
fn take(state: &mut QueueState, client: &BatchClient<'_>) -> NextAction {
    let limit = client.api.limit();
    let mut items = Vec::new();
    let mut bytes = 0;
    while let Some(item) = state.queued.front() {
        let more = item.id.len() + item.body.len() + AROUND;
        let fits = items.len() < limit.requests && bytes + more <= limit.bytes;
        if !items.is_empty() && !fits {
            break;
        }
        bytes += more;
        items.extend(state.queued.pop_front());
    }
    if state.queued.is_empty() {
        state.latest = None;
    }
    let all: Vec<String> = items
        .iter()
        .map(|item| format!("{} {}", item.id, item.sent.request))
        .collect();
    let submitting = Submitting {
        agent: client.agent.name.clone(),
        place: place(client.agent),
        requests: items
            .iter()
            .map(|item| (item.id.clone(), item.number))
            .collect(),
        digest: Digest::of(all.join("\n")),
    };
    let (batch, when) = match client.records.submitting(&submitting) {
        Ok(recorded) => recorded,
        Err(outcome) => {
            for item in items {
                let results = BatchedResult::Broken(outcome.clone());
                state.results.insert(item.number, results);
            }
            return NextAction::Wait(Duration::ZERO);
        }
    };
    let holder = |item: &QueuedRequest| BatchedCall {
        left: LeftCall {
            call: CallId {
                run: batch.run.clone(),
                number: item.number,
            },
            sent: item.sent.clone(),
            response: None,
        },
        awaited: Some(item.number),
    };
    state.in_flight.push(InFlightBatch {
        batch: batch.clone(),
        when,
        size: items.len() as u64,
        ids: Vec::new(),
        requests: items
            .iter()
            .map(|item| (item.id.clone(), holder(item)))
            .collect(),
        due: Deadline::after(Duration::MAX),
        wait: client.pace.first,
    });
    NextAction::Submit(batch, items)
}

fn find<'a>(state: &'a mut QueueState, batch: &CallId) -> Option<&'a mut InFlightBatch> {
    let mut all = state.in_flight.iter_mut();
    all.find(|under| under.batch == *batch)
}

/// Returns true if the provider may have created a batch although submitting failed.
fn is_doubtful(kind: FaultKind) -> bool {
    match kind {
        FaultKind::Timeout | FaultKind::Cut | FaultKind::Unreadable | FaultKind::Cancelled => true,
        FaultKind::Status(status) => status >= 500,
        _ => false,
    }
}

fn longer(wait: Duration, longest: Duration) -> Duration {
    wait.saturating_mul(3)
        .checked_div(2)
        .unwrap_or(wait)
        .min(longest)
}

/// Converts a fault of a request in a batch to the fault of a call.
fn fault_of(fault: BatchFault) -> CallFault {
    match fault {
        BatchFault::Call(fault) => fault,
        other => free(CallFault::new(FaultKind::Timeout, other.to_string())),
    }
}

fn free(fault: CallFault) -> CallFault {
    CallFault {
        reported_cost: Some(NanoUsd::ZERO),
        ..fault
    }
}
