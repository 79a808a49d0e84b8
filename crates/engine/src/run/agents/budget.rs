//! The budget of a run, enforced before each call; cached answers and the record of every call.

mod batches;
mod limits;
mod measured;

pub(crate) use limits::{Budget, PricedCall, RefusedCall, Standing};

use crate::run::context::Context;
use crate::steps::agent::costs::CallCosts;
use crate::steps::batch_context::cancelled;
use crate::steps::calls::{Calls, NextCall, ProviderBatches, ValidAnswer};
use measured::MeasuredUsage;
use milepost_agents::http::Cancelled;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::{CallResponse, SentCall, Spent};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::AnswersOf;
use milepost_store::store::answers::{Answer, AnswerError, Answers, QuestionClaim, Sharing};
use milepost_store::store::batches::BatchLog;
use milepost_store::store::calls::{self, CallLog};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a batch that waits for another checks whether the run is stopped.
const LOOK: Duration = Duration::from_millis(100);

/// The records behind the agent steps of one run.
pub(crate) struct RunCalls<'a> {
    ctx: Context<'a>,
    run: String,
    answers: Answers,
    budget: Budget,
    ledger: Mutex<Ledger>,
    /// Questions that a batch is asking.
    claimed: Mutex<HashMap<Digest, Arc<QuestionClaim>>>,
    /// True if a batch has waited for another run.
    has_waited: AtomicBool,
    /// Notified when questions are released.
    released: Condvar,
    /// Notified when the cost of a call is known, or will not be known.
    settled: Condvar,
}

struct Ledger {
    log: CallLog,
    batches: BatchLog,
    standing: Standing,
    /// Spent by the workspace before this run; read when first needed.
    before: Option<Spent>,
    /// The calls whose cost this run will learn, each with its prompt and the most input tokens that its request can have.
    open: BTreeMap<u64, Option<(Prompt, u64)>>,
    measured: BTreeMap<Prompt, MeasuredUsage>,
}

/// A prompt of an agent.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Prompt {
    /// Stage and step.
    step: (String, String),
    agent: String,
    /// True if more than a tenth of the request is not ASCII.
    is_wide: bool,
}

impl<'a> RunCalls<'a> {
    pub(crate) fn new(ctx: Context<'a>, run: &str, budget: Budget) -> Self {
        let project = ctx.files.folder(Root::Project);
        Self {
            ctx,
            run: run.to_owned(),
            answers: Answers::open(ctx.disk, project, ctx.layout, run),
            budget,
            ledger: Mutex::new(Ledger {
                log: CallLog::new(ctx.disk, ctx.layout, run),
                batches: BatchLog::new(ctx.disk, ctx.layout, run),
                standing: Standing::default(),
                before: None,
                open: BTreeMap::new(),
                measured: BTreeMap::new(),
            }),
            claimed: Mutex::default(),
            has_waited: AtomicBool::new(false),
            released: Condvar::new(),
            settled: Condvar::new(),
        }
    }

    fn claimed(&self) -> MutexGuard<'_, HashMap<Digest, Arc<QuestionClaim>>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the budget allows a call beside those in flight.
    fn check(
        &self,
        ledger: &mut Ledger,
        sent: &SentCall,
        costs: &CallCosts,
    ) -> Result<(), RefusedCall> {
        let Ledger {
            standing, before, ..
        } = ledger;
        let mut read = || match *before {
            Some(known) => Ok(known),
            None => {
                let found = calls::spent(self.ctx.layout, &self.run).map_err(kept)?;
                Ok(*before.insert(found))
            }
        };
        self.budget
            .check(&PricedCall::of(sent, costs), standing, &mut read)
    }
}

fn with_calls(found: Vec<Option<Answer>>) -> Vec<Option<(Value, AnswersOf)>> {
    let with_call = |found: Answer| {
        let (run, call) = found.call;
        (found.answer, AnswersOf::one(&run, call))
    };
    found
        .into_iter()
        .map(|found| found.map(with_call))
        .collect()
}

fn kept(error: impl std::fmt::Display) -> Outcome {
    Outcome::new(OutcomeKind::Output, error.to_string()).for_good()
}

impl Calls for RunCalls<'_> {
    fn batched(&self) -> Option<&dyn ProviderBatches> {
        Some(self)
    }

    fn known(
        &self,
        addresses: &[Digest],
        since: Option<&[String]>,
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        let Some(since) = since else {
            return self.kept(addresses);
        };
        // Answers of these runs are new enough.
        let ours = |found: &Answer| since.contains(&found.call.0);
        let found = addresses.iter().map(|&address| self.answers.peek(address));
        let found = found.map(|found| Ok(found?.filter(ours)));
        let found: Result<Vec<_>, AnswerError> = found.collect();
        Ok(with_calls(found.map_err(kept)?))
    }

    fn kept(&self, addresses: &[Digest]) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        Ok(with_calls(self.answers.get_all(addresses).map_err(kept)?))
    }

    fn run(&self) -> &str {
        &self.run
    }

    fn is_limited(&self) -> bool {
        self.budget.is_limited()
    }

    fn claim(&self, addresses: &[Digest], is_fresh: bool) -> Result<Vec<Digest>, Outcome> {
        let mut claimed = self.claimed();
        let free = addresses.iter().copied();
        let free: BTreeSet<Digest> = free.filter(|it| !claimed.contains_key(it)).collect();
        let free: Vec<Digest> = free.into_iter().collect();
        let claim = Arc::new(self.answers.claim(&free, is_fresh).map_err(kept)?);
        let ours = claim.addresses.iter();
        claimed.extend(ours.map(|&address| (address, Arc::clone(&claim))));
        Ok(claim.addresses.clone())
    }

    fn release(&self, addresses: &[Digest]) {
        let mut claimed = self.claimed();
        for address in addresses {
            claimed.remove(address);
        }
        self.released.notify_all();
    }

    fn wait(
        &self,
        address: Digest,
        is_fresh: bool,
        stopped: Cancelled<'_>,
        waits: &dyn Fn(&str),
    ) -> Result<(), Outcome> {
        let mut claimed = self.claimed();
        while !stopped() {
            if !claimed.contains_key(&address) {
                if is_fresh {
                    break;
                }
                let Some(run) = self.answers.asked_by(address).map_err(kept)? else {
                    break;
                };
                if !self.has_waited.swap(true, Ordering::Relaxed) {
                    waits(&run);
                }
            }
            let waited = self.released.wait_timeout(claimed, LOOK);
            claimed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn keep(&self, answers: Vec<ValidAnswer>) -> Result<(), Outcome> {
        let (shared, own): (Vec<ValidAnswer>, Vec<ValidAnswer>) =
            answers.into_iter().partition(|answer| answer.is_shared);
        for (answers, sharing) in [(shared, Sharing::Project), (own, Sharing::Workspace)] {
            let answers: Vec<Answer> = answers
                .into_iter()
                .map(|answer| Answer {
                    address: answer.address,
                    answer: answer.answer,
                    schema: answer.schema,
                    agent: self.ctx.redactor.text(&answer.agent).into_owned(),
                    call: (self.run.clone(), answer.call),
                })
                .collect();
            self.answers.put_all(&answers, sharing).map_err(kept)?;
        }
        Ok(())
    }

    fn sending(&self, call: NextCall<'_>) -> Result<u64, Outcome> {
        let bound = call.sent.most_input;
        let sent = call.sent;
        // Other scripts than Latin take several times as many tokens a byte.
        let wide = call.body.iter().filter(|byte| !byte.is_ascii()).count();
        let prompt = Prompt {
            step: (sent.stage.clone(), call.step.to_owned()),
            agent: sent.agent.clone(),
            is_wide: wide > call.body.len() / 10,
        };
        let mut has_waited = false;
        let mut ledger = self.ledger();
        let checked = loop {
            let measured = ledger.measured.get(&prompt).copied().unwrap_or_default();
            measured.reserve(sent, bound, call.costs);
            let refusal = match self.check(&mut ledger, sent, call.costs) {
                Ok(()) => break Ok(()),
                Err(refusal) => refusal,
            };
            if !refusal.waits || ledger.open.is_empty() {
                break Err(refusal.outcome);
            }
            if (call.stopped)() {
                break Err(cancelled());
            }
            if has_waited {
                let waited = self.settled.wait_timeout(ledger, LOOK);
                ledger = waited.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                has_waited = true;
                drop(ledger);
                (call.waits)(true);
                ledger = self.ledger();
            }
        };
        let sending = checked.and_then(|()| {
            let now = self.ctx.clock.now();
            let without = sent.clone().without_keys(self.ctx.redactor);
            let number = ledger.log.sent(now, &without, call.body).map_err(kept)?;
            ledger.standing.hold(sent);
            ledger.open.insert(number, Some((prompt, bound)));
            Ok(number)
        });
        drop(ledger);
        if has_waited {
            (call.waits)(false);
        }
        sending
    }

    fn over(&self, number: u64) {
        self.ledger().open.remove(&number);
        self.settled.notify_all();
    }

    fn received(
        &self,
        number: u64,
        sent: &SentCall,
        response: CallResponse,
        raw: &[u8],
    ) -> Result<CallResponse, Outcome> {
        let redactor = self.ctx.redactor;
        let raw = redactor.bytes(raw);
        let response = response.without_keys(redactor, &raw);
        let mut ledger = self.ledger();
        ledger.standing.settle(sent, &response);
        if let Some(Some((prompt, bound))) = ledger.open.remove(&number) {
            let measured = ledger.measured.entry(prompt).or_default();
            measured.add(sent, bound, &response);
        }
        self.settled.notify_all();
        let now = self.ctx.clock.now();
        ledger
            .log
            .received(now, number, &response, &raw)
            .map_err(kept)?;
        Ok(response)
    }

    fn redactor(&self) -> &Redactor {
        self.ctx.redactor
    }
}
