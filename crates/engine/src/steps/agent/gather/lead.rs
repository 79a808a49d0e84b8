//! What is done for all who wait for batches: submit what was gathered, look for a batch whose id was lost, poll, harvest.

use super::{Came, Desk, Gatherer, Holder, Item, State, Under, place};
use crate::steps::agent::heard::{TRIES, heard_of, heard_of_fault, outcome_of};
use crate::steps::calls::ProviderBatchUpdate;
use crate::steps::command::Deadline;
use jiff::SignedDuration;
use milepost_agents::api::{BatchFault, BatchProgress, BatchResult, SubmittedBatch};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::policy::{Next, after, is_final};
use milepost_core::base::digest::Digest;
use milepost_core::model::batched::{CallId, LeftCall, Submitting};
use milepost_core::model::call::Heard;
use milepost_core::model::money::NanoUsd;
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

/// How often the run's wish to stop is looked at.
const TICK: Duration = Duration::from_millis(25);

/// Time to send a batch, to ask about one, and to fetch its results.
const SUBMIT: Duration = Duration::from_mins(10);
const ASK: Duration = Duration::from_mins(1);
const RESULTS_TIMEOUT: Duration = Duration::from_mins(10);

/// Time that a stopped run gives to a batch that is being submitted.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long before and after it was recorded a batch may have been made, by the provider's clock: it may take [`SUBMIT`] to send it.
const EARLY: SignedDuration = SignedDuration::from_mins(2);
const LATE: SignedDuration = SignedDuration::from_mins(15);

/// Beside each request in a batch.
const AROUND: usize = 128;

/// What is to be done.
enum Act {
    Submit(CallId, Vec<Item>),
    Look(CallId),
    Poll(CallId, Vec<String>),
    Wait(Duration),
}

impl Gatherer {
    /// Does what is to be done until something came of the request with this number, or nobody is to wait on.
    pub(super) fn lead(&self, desk: &Desk<'_>, number: u64, until: Deadline) {
        loop {
            let mut state = self.lock();
            if state.came.contains_key(&number) || (desk.stopped)() || until.is_over() {
                return;
            }
            match next(&mut state, desk) {
                Act::Wait(wait) => {
                    let waited = self.changed.wait_timeout(state, wait);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                act => {
                    drop(state);
                    self.act(desk, act);
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Looks once after every batch that an earlier run left: what is done is harvested, also if nobody asks any more.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(crate) fn sweep(
        &self,
        desk: &Desk<'_>,
    ) -> Result<(), milepost_core::model::outcome::Outcome> {
        let state = self.opened(desk)?;
        let under_way = state.under_way.iter();
        let all: Vec<CallId> = under_way.map(|under| under.batch.clone()).collect();
        drop(state);
        for batch in all {
            if self.ids(&batch).is_empty() {
                self.look(desk, &batch);
            }
            let ids = self.ids(&batch);
            if !ids.is_empty() && !(desk.stopped)() {
                self.poll(desk, &batch, ids);
            }
        }
        Ok(())
    }

    fn ids(&self, batch: &CallId) -> Vec<String> {
        let mut state = self.lock();
        let under = find(&mut state, batch);
        under.map(|under| under.ids.clone()).unwrap_or_default()
    }

    fn act(&self, desk: &Desk<'_>, act: Act) {
        match act {
            Act::Submit(batch, items) => self.submit(desk, &batch, items),
            Act::Look(batch) => self.look(desk, &batch),
            Act::Poll(batch, ids) => self.poll(desk, &batch, ids),
            Act::Wait(_) => {}
        }
    }

    fn submit(&self, desk: &Desk<'_>, batch: &CallId, mut items: Vec<Item>) {
        let requests: Vec<(String, Vec<u8>)> = items
            .iter_mut()
            .map(|item| (item.id.clone(), std::mem::take(&mut item.body)))
            .collect();
        // What is half submitted when the run is stopped is better known than looked for.
        let patience = OnceLock::new();
        let stopped = || {
            let ends = || Deadline::after(PATIENCE);
            (desk.stopped)() && patience.get_or_init(ends).is_over()
        };
        match desk.api.submit(&requests, SUBMIT, &stopped) {
            Ok(id) => {
                // Before anything else is done with it.
                let kept = desk.book.submitted(batch, std::slice::from_ref(&id));
                (desk.updated)(ProviderBatchUpdate::Submitted {
                    id: id.clone(),
                    requests: requests.len(),
                });
                let mut state = self.lock();
                state.refused = 0;
                state.known.insert(id.clone());
                if let Some(under) = find(&mut state, batch) {
                    under.ids = vec![id];
                    under.due = Deadline::after(desk.pace.first);
                }
                drop(state);
                if let Err(outcome) = kept {
                    self.give_up_waiting(batch, |_| Came::Broken(outcome.clone()));
                }
            }
            // It may have been made: it is looked for, by the next run if this one is being stopped.
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
                self.put_back(desk, batch, items, &fault);
            }
        }
    }

    /// What was not taken is submitted again when the provider may take it, or is refused.
    fn put_back(&self, desk: &Desk<'_>, batch: &CallId, items: Vec<Item>, fault: &CallFault) {
        let over = desk.book.over(batch);
        let mut state = self.lock();
        let Some(at) = state.under_way.iter().position(|it| it.batch == *batch) else {
            return;
        };
        let under = state.under_way.remove(at);
        state.refused += 1;
        let next = after(fault, state.refused, 0.5);
        let tries = desk.agent.limits.tries.unwrap_or(TRIES);
        let again = match next {
            Next::Retry { wait } if state.refused < tries && over.is_ok() => Some(wait),
            _ => None,
        };
        let mut unsent = Vec::new();
        for item in items.into_iter().rev() {
            let holder = under.requests.get(&item.id);
            match (holder.and_then(|holder| holder.awaited), &over) {
                (Some(_), _) if again.is_some() => state.gathered.push_front(item),
                (Some(number), Ok(())) => {
                    let came = Came::Refused(fault.clone());
                    state.came.insert(number, came);
                }
                (Some(number), Err(outcome)) => {
                    let came = Came::Broken(outcome.clone());
                    state.came.insert(number, came);
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
            // What cannot be recorded counts as spent.
            let _ = desk.book.heard_late(&left, &Heard::never_sent(), b"");
        }
    }

    /// Looks for a batch whose id was lost among the provider's latest. Those that may be it are polled; whether one is it, the ids
    /// in its results tell.
    fn look(&self, desk: &Desk<'_>, batch: &CallId) {
        let recent = desk.api.recent(ASK, desk.stopped);
        let mut state = self.lock();
        let known = state.known.clone();
        let Some(under) = find(&mut state, batch) else {
            return;
        };
        let found = match recent {
            Ok(list) => list,
            Err(fault) if fault.kind == FaultKind::Cancelled => return,
            // There is no such list.
            Err(fault) if is_final(fault.kind) => Vec::new(),
            Err(fault) => {
                drop(state);
                return self.later(desk, batch, &fault);
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
            self.lose(desk, batch);
        } else if let Err(outcome) = desk.book.submitted(batch, &ids) {
            self.give_up_waiting(batch, |_| Came::Broken(outcome.clone()));
        }
    }

    fn poll(&self, desk: &Desk<'_>, batch: &CallId, ids: Vec<String>) {
        let mut still = Vec::new();
        for id in &ids {
            let results = match desk.api.poll(id, ASK, desk.stopped) {
                Ok(BatchProgress::Running { .. }) => {
                    still.push(id.clone());
                    continue;
                }
                Ok(BatchProgress::Ended) => desk.api.results(id, RESULTS_TIMEOUT, desk.stopped),
                Ok(BatchProgress::Refused(fault)) => {
                    let fault = free(fault);
                    let all = |_: &str| Err(BatchFault::Call(fault.clone()));
                    return self.deliver(desk, batch, all);
                }
                Err(fault) => Err(fault),
            };
            match results {
                Ok(results) => {
                    let mut results: HashMap<String, BatchResult> = results.into_iter().collect();
                    if self.is_it(batch, &results) || (results.is_empty() && ids.len() == 1) {
                        let expired = || Err(BatchFault::Expired);
                        return self
                            .deliver(desk, batch, |id| results.remove(id).unwrap_or_else(expired));
                    }
                    // Somebody else's.
                }
                Err(fault) if fault.kind == FaultKind::Cancelled => return,
                // The provider has no such batch, or not any more.
                Err(fault) if is_final(fault.kind) => {}
                Err(fault) => return self.later(desk, batch, &fault),
            }
        }
        if still.is_empty() {
            return self.lose(desk, batch);
        }
        let mut state = self.lock();
        if let Some(under) = find(&mut state, batch) {
            under.ids = still;
            under.due = Deadline::after(under.wait);
            under.wait = longer(under.wait, desk.pace.longest);
        }
    }

    /// Whether results are of this batch: one of its requests is among them.
    fn is_it(&self, batch: &CallId, results: &HashMap<String, BatchResult>) -> bool {
        let mut state = self.lock();
        let under = find(&mut state, batch);
        under.is_some_and(|under| under.requests.keys().any(|id| results.contains_key(id)))
    }

    /// The provider could not be asked: again later; who waits is told what waiting does not mend.
    fn later(&self, desk: &Desk<'_>, batch: &CallId, fault: &CallFault) {
        let mut state = self.lock();
        if let Some(under) = find(&mut state, batch) {
            let wait = fault.retry_after.unwrap_or_default().max(under.wait);
            under.due = Deadline::after(wait);
            under.wait = longer(under.wait, desk.pace.longest);
        }
        drop(state);
        if matches!(fault.kind, FaultKind::Auth | FaultKind::Money) {
            let outcome = outcome_of(desk.agent, fault).for_good();
            self.give_up_waiting(batch, |_| Came::Broken(outcome.clone()));
        }
    }

    /// Nothing more will be heard of a batch: what it may have cost stays reserved, and who waits asks again.
    fn lose(&self, desk: &Desk<'_>, batch: &CallId) {
        let came = match desk.book.over(batch) {
            Ok(()) => |_: &Holder| Came::Lost,
            Err(outcome) => {
                return self.give_up_waiting(batch, |_| Came::Broken(outcome.clone()));
            }
        };
        self.give_up_waiting(batch, came);
        let mut state = self.lock();
        state.under_way.retain(|under| under.batch != *batch);
    }

    /// Tells those who wait for a batch that they need not.
    fn give_up_waiting(&self, batch: &CallId, came: impl Fn(&Holder) -> Came) {
        let mut state = self.lock();
        let mut told = Vec::new();
        if let Some(under) = find(&mut state, batch) {
            for holder in under.requests.values_mut() {
                if let Some(number) = holder.awaited.take() {
                    told.push((number, came(holder)));
                }
            }
        }
        state.came.extend(told);
    }

    /// Gives each request its result; those for which nobody waits are recorded.
    fn deliver(
        &self,
        desk: &Desk<'_>,
        batch: &CallId,
        mut result: impl FnMut(&str) -> BatchResult,
    ) {
        let mut late = Vec::new();
        let mut state = self.lock();
        let Some(at) = state.under_way.iter().position(|it| it.batch == *batch) else {
            return;
        };
        let under = state.under_way.remove(at);
        let (all, mut answered) = (under.requests.len(), 0);
        for (id, holder) in under.requests {
            let result = result(&id).map_err(fault_of);
            answered += usize::from(result.is_ok());
            match holder.awaited {
                Some(number) => drop(state.came.insert(number, Came::Result(result))),
                None => late.push((holder.left, result)),
            }
        }
        drop(state);
        self.changed.notify_all();
        (desk.updated)(ProviderBatchUpdate::Ended {
            ids: under.ids,
            answered,
            requests: all,
        });
        for (left, result) in late {
            let (heard, raw) = match &result {
                Ok(reply) => (heard_of(desk.costs, &left.sent, reply, 0), &reply.raw),
                Err(fault) => (heard_of_fault(desk.costs, &left.sent, fault, 0), &fault.raw),
            };
            // What cannot be recorded is fetched again by the next run.
            if desk.book.heard_late(&left, &heard, raw).is_ok() && result.is_ok() {
                let heard = Some(heard);
                self.lock().answered.push(LeftCall { heard, ..left });
            }
        }
    }
}

/// What is to be done next.
fn next(state: &mut State, desk: &Desk<'_>) -> Act {
    let mut wait = TICK;
    let is_over = |deadline: &Option<Deadline>| deadline.as_ref().is_none_or(Deadline::is_over);
    if !state.gathered.is_empty() && is_over(&state.held) {
        let limit = desk.api.limit();
        let waiting: usize = state.under_way.iter().map(Under::awaited).sum();
        let is_full = state.gathered.len() >= limit.requests || {
            let bytes = state.gathered.iter().map(|item| item.body.len() + AROUND);
            bytes.sum::<usize>() >= limit.bytes
        };
        let waiting = state.gathered.len() + waiting + state.broke;
        let all_wait = || waiting >= (desk.running)();
        if is_full || is_over(&state.quiet) || is_over(&state.latest) || all_wait() {
            return take(state, desk);
        }
        wait = wait.min(state.quiet.map_or(TICK, |quiet| quiet.left()));
    }
    match state.under_way.iter().find(|under| under.due.is_over()) {
        Some(under) if under.ids.is_empty() => Act::Look(under.batch.clone()),
        Some(under) => Act::Poll(under.batch.clone(), under.ids.clone()),
        None => Act::Wait(wait.max(Duration::from_millis(1))),
    }
}

/// Takes as many of the gathered as fit in a batch, and records that they are about to be submitted.
fn take(state: &mut State, desk: &Desk<'_>) -> Act {
    let limit = desk.api.limit();
    let mut items = Vec::new();
    let mut bytes = 0;
    while let Some(item) = state.gathered.front() {
        let more = item.id.len() + item.body.len() + AROUND;
        let fits = items.len() < limit.requests && bytes + more <= limit.bytes;
        if !items.is_empty() && !fits {
            break;
        }
        bytes += more;
        items.extend(state.gathered.pop_front());
    }
    if state.gathered.is_empty() {
        state.latest = None;
    }
    let all: Vec<String> = items
        .iter()
        .map(|item| format!("{} {}", item.id, item.sent.request))
        .collect();
    let submitting = Submitting {
        agent: desk.agent.name.clone(),
        place: place(desk.agent),
        requests: items
            .iter()
            .map(|item| (item.id.clone(), item.number))
            .collect(),
        digest: Digest::of(all.join("\n")),
    };
    let (batch, when) = match desk.book.submitting(&submitting) {
        Ok(recorded) => recorded,
        Err(outcome) => {
            for item in items {
                let came = Came::Broken(outcome.clone());
                state.came.insert(item.number, came);
            }
            return Act::Wait(Duration::ZERO);
        }
    };
    let holder = |item: &Item| Holder {
        left: LeftCall {
            call: CallId {
                run: batch.run.clone(),
                number: item.number,
            },
            sent: item.sent.clone(),
            heard: None,
        },
        awaited: Some(item.number),
    };
    state.under_way.push(Under {
        batch: batch.clone(),
        when,
        size: items.len() as u64,
        ids: Vec::new(),
        requests: items
            .iter()
            .map(|item| (item.id.clone(), holder(item)))
            .collect(),
        due: Deadline::after(Duration::MAX),
        wait: desk.pace.first,
    });
    Act::Submit(batch, items)
}

fn find<'a>(state: &'a mut State, batch: &CallId) -> Option<&'a mut Under> {
    let mut all = state.under_way.iter_mut();
    all.find(|under| under.batch == *batch)
}

/// Whether a batch may have been made although its sender was told of a failure.
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

/// A fault of a request in a batch, as a call's of its own.
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
