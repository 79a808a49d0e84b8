//! Requests of an agent in batch mode: gathered from all attempts that run at once, submitted together, and waited for.
//!
//! No thread is kept for it: one of those that wait does what is to be done for all of them ([`lead`]), until it has its own
//! answer and another one takes its place.

mod lead;

use super::costs::CallCosts;
use super::heard::reply_of;
use crate::steps::calls::{Batched, Calls, Pace, ProviderBatchUpdate};
use crate::steps::command::Deadline;
use jiff::Timestamp;
use milepost_agents::api::BatchApi;
use milepost_agents::fault::CallFault;
use milepost_agents::http::Cancelled;
use milepost_agents::request::Reply;
use milepost_core::model::agent::{Agent, Provider};
use milepost_core::model::batched::{CallId, LeftBatch, LeftCall};
use milepost_core::model::call::Sent;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often one who waits, and does nothing for the others, looks whether it may wait on.
const WAKE: Duration = Duration::from_millis(500);

/// What those who ask bring along.
pub(crate) struct Desk<'a> {
    /// The agent.
    pub(crate) agent: &'a Agent,
    /// What its calls cost.
    pub(crate) costs: &'a CallCosts,
    /// Its provider's batch API.
    pub(crate) api: &'a dyn BatchApi,
    /// The records of calls.
    pub(crate) calls: &'a dyn Calls,
    /// The records of batches.
    pub(crate) book: &'a dyn Batched,
    /// Whether nobody is to wait on.
    pub(crate) stopped: Cancelled<'a>,
    /// How many attempts run or are about to: when so many wait, no further request will come.
    pub(crate) running: &'a dyn Fn() -> usize,
    /// Receives each change in the state of a batch.
    pub(crate) updated: &'a dyn Fn(ProviderBatchUpdate),
    /// When to submit and to poll.
    pub(crate) pace: Pace,
}

/// What came of a request.
pub(crate) enum Came {
    /// As of a call of its own.
    Result(Result<Reply, CallFault>),
    /// The batch was not taken, after all tries.
    Refused(CallFault),
    /// The batch is not to be found: whether it was made, and cost something, nobody knows.
    Lost,
    /// It cannot be waited for now. It may be under way.
    Broken(Outcome),
}

/// How waiting ended.
pub(crate) enum Waited {
    /// Something came.
    Came(Box<Came>),
    /// It was not submitted, and will not be.
    Unsent,
    /// It is under way at the provider, or may be.
    Left,
}

/// The requests of one agent.
#[derive(Default)]
pub(crate) struct Gatherer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether what earlier runs left was read.
    is_open: bool,
    /// Whether somebody does what is to be done.
    is_led: bool,
    gathered: VecDeque<Item>,
    /// When the gathered are submitted if no more come, and at the latest.
    quiet: Option<Deadline>,
    latest: Option<Deadline>,
    /// Nothing is submitted before: the provider refused it for now.
    held: Option<Deadline>,
    refused: u32,
    under_way: Vec<Under>,
    /// Answered calls of earlier runs whose answers nobody used.
    answered: Vec<LeftCall>,
    /// The provider's ids of batches that are known.
    known: BTreeSet<String>,
    /// What came, by the number of the call, for those who wait.
    came: HashMap<u64, Came>,
    /// Those whose request is paid or about to be, and not settled.
    open: usize,
    /// Those who wait until money that is reserved for others is free.
    broke: usize,
    settled: u64,
}

/// A request that is to be submitted.
struct Item {
    /// Its id in the batch.
    id: String,
    number: u64,
    sent: Sent,
    body: Vec<u8>,
}

/// A batch at the provider.
struct Under {
    batch: CallId,
    when: Timestamp,
    size: u64,
    /// The provider's id, or those of which it is one; none when it has to be looked for.
    ids: Vec<String>,
    requests: BTreeMap<String, Holder>,
    due: Deadline,
    wait: Duration,
}

/// The call of a request.
struct Holder {
    left: LeftCall,
    /// Its number, if somebody waits for it.
    awaited: Option<u64>,
}

impl Under {
    fn awaited(&self) -> usize {
        let holders = self.requests.values();
        holders.filter(|holder| holder.awaited.is_some()).count()
    }

    fn of_left(left: LeftBatch, first: Duration) -> Self {
        let holder = |left: LeftCall| Holder {
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

/// Whose API it is, and where: a batch is known nowhere else.
pub(crate) fn place(agent: &Agent) -> String {
    match &agent.provider {
        Provider::Api(api) => {
            let url = api.base_url.as_deref().unwrap_or_default();
            format!("{} {url}", api.kind.name()).trim_end().to_owned()
        }
        _ => String::new(),
    }
}

impl Gatherer {
    /// Takes a request, and gives the number of its call, which ends with [`Gatherer::settled`]. The same request that an earlier run sent, and nobody asked for since, is
    /// not sent again: the call goes on as this one.
    ///
    /// # Errors
    /// When it must not be sent, or could not be recorded.
    pub(crate) fn hand_in(
        &self,
        desk: &Desk<'_>,
        sent: &mut Sent,
        body: Vec<u8>,
    ) -> Result<u64, Outcome> {
        let mut state = self.opened(desk)?;
        let at = nearest(
            state.answered.iter().map(|left| &left.sent).enumerate(),
            sent,
        );
        if let Some(at) = at {
            let left = state.answered.swap_remove(at);
            sent.reserved = left.sent.reserved;
            let own = desk.book.take_over(&left, sent, &body)?;
            if let Some(heard) = &left.heard {
                let reply = reply_of(heard, sent);
                state.came.insert(own.number, Came::Result(Ok(reply)));
            }
            state.open += 1;
            return Ok(own.number);
        }
        let under_way = state.under_way.iter().enumerate();
        let free = under_way.flat_map(|(at, under)| {
            let holders = under.requests.iter();
            let holders = holders.filter(|(_, holder)| holder.awaited.is_none());
            holders.map(move |(id, holder)| ((at, id.clone()), &holder.left.sent))
        });
        if let Some((at, id)) = nearest(free, sent)
            && let Some(holder) = state.under_way[at].requests.get_mut(&id)
        {
            sent.reserved = holder.left.sent.reserved;
            let own = desk.book.take_over(&holder.left, sent, &body)?;
            let number = own.number;
            holder.awaited = Some(number);
            holder.left = LeftCall {
                call: own,
                sent: sent.clone(),
                heard: None,
            };
            state.open += 1;
            self.changed.notify_all();
            return Ok(number);
        }
        // Others need not wait for the disk.
        drop(state);
        let number = self.paid(desk, sent, &body)?;
        let item = Item {
            // Of no other call of any run or workspace: by it a batch is known whose own id was lost.
            id: format!("{}-{number}", desk.calls.run()),
            number,
            sent: sent.clone(),
            body,
        };
        let mut state = self.lock();
        state.gathered.push_back(item);
        state.quiet = Some(Deadline::after(desk.pace.quiet));
        let latest = desk.pace.quiet.saturating_mul(30);
        state.latest.get_or_insert_with(|| Deadline::after(latest));
        self.changed.notify_all();
        Ok(number)
    }

    /// Waits until something came of the request with this number.
    pub(crate) fn wait(&self, desk: &Desk<'_>, number: u64, until: Deadline) -> Waited {
        let mut state = self.lock();
        loop {
            if let Some(came) = state.came.remove(&number) {
                return Waited::Came(Box::new(came));
            }
            if (desk.stopped)() || until.is_over() {
                return leave(&mut state, number);
            }
            if state.is_led {
                let waited = self.changed.wait_timeout(state, WAKE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.is_led = true;
            drop(state);
            let leading = Leading(self);
            self.lead(desk, number, until);
            drop(leading);
            state = self.lock();
        }
    }

    /// Records a request that is about to be sent. What it may cost at most is reserved for many at once, and few cost so much: one
    /// that cannot be paid waits for those that are under way.
    fn paid(&self, desk: &Desk<'_>, sent: &Sent, body: &[u8]) -> Result<u64, Outcome> {
        loop {
            let mut state = self.lock();
            state.open += 1;
            let settled = state.settled;
            drop(state);
            let refused = match desk.calls.sending(sent, body) {
                Ok(number) => return Ok(number),
                Err(refused) => refused,
            };
            let mut state = self.lock();
            state.open -= 1;
            state.broke += 1;
            self.changed.notify_all();
            let waits = refused.kind == OutcomeKind::Budget;
            while waits && state.settled == settled && state.open > 0 && !(desk.stopped)() {
                let waited = self.changed.wait_timeout(state, WAKE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.broke -= 1;
            if !waits || state.settled == settled || (desk.stopped)() {
                return Err(refused);
            }
        }
    }

    /// What a request cost is known, or that it will not be known in this run.
    pub(crate) fn settled(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        state.settled += 1;
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, with what earlier runs left.
    fn opened(&self, desk: &Desk<'_>) -> Result<MutexGuard<'_, State>, Outcome> {
        let mut state = self.lock();
        if !state.is_open {
            let left = desk.book.left(&desk.agent.name, &place(desk.agent))?;
            let first = desk.pace.first;
            let batches = left.batches.into_iter();
            state.under_way = batches.map(|left| Under::of_left(left, first)).collect();
            state.answered = left.answered;
            state.known = left.known;
            state.is_open = true;
            if !state.under_way.is_empty() {
                let batches = state.under_way.len();
                (desk.updated)(ProviderBatchUpdate::Resumed { batches });
            }
        }
        Ok(state)
    }
}

/// Somebody else can do what is to be done when this is dropped, also after a panic.
struct Leading<'a>(&'a Gatherer);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.lock().is_led = false;
        self.0.changed.notify_all();
    }
}

/// One who waited goes.
fn leave(state: &mut State, number: u64) -> Waited {
    if let Some(at) = state.gathered.iter().position(|item| item.number == number) {
        state.gathered.remove(at);
        return Waited::Unsent;
    }
    for under in &mut state.under_way {
        for holder in under.requests.values_mut() {
            if holder.awaited == Some(number) {
                holder.awaited = None;
            }
        }
    }
    Waited::Left
}

/// Of calls that sent the same bytes, one of the same batch if there is one.
fn nearest<'a, At>(calls: impl Iterator<Item = (At, &'a Sent)>, sent: &Sent) -> Option<At> {
    let same = calls.filter(|(_, other)| other.request == sent.request);
    let distance = |other: &Sent| {
        (
            other.stage != sent.stage || other.batch != sent.batch,
            other.attempt,
        )
    };
    same.min_by_key(|(_, other)| distance(other))
        .map(|(at, _)| at)
}
