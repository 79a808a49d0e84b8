//! The budget of a run, enforced before each call is sent; kept answers and the record of every call.

mod batches;

use crate::run::context::Context;
use crate::steps::calls::{Calls, ProviderBatches, ValidAnswer};
use milepost_core::base::digest::Digest;
use milepost_core::base::duration::show_duration;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::{Heard, Sent, Spent};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Limits;
use milepost_core::model::record::AnswersOf;
use milepost_core::plan::options::RunOptions;
use milepost_store::store::answers::{Answer, AnswerError, Answers, Sharing};
use milepost_store::store::batches::BatchLog;
use milepost_store::store::calls::{self, CallLog};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a batch that waits for another checks whether the run is stopped.
const LOOK: Duration = Duration::from_millis(100);

/// The budget of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Money for this run.
    pub(crate) run: Option<NanoUsd>,
    /// Money for all runs of the workspace.
    pub(crate) workspace: Option<NanoUsd>,
    /// Calls of the workspace.
    pub(crate) calls: Option<u64>,
    /// Tokens of the workspace.
    pub(crate) tokens: Option<u64>,
    /// The total duration of the calls of the workspace.
    pub(crate) time: Option<Duration>,
    /// Only free agents may be asked.
    pub(crate) only_free: bool,
}

impl Budget {
    /// Returns what a run with these options may spend in a workspace with these limits.
    pub(crate) fn new(options: &RunOptions, limits: &Limits) -> Self {
        Self {
            run: options.budget_usd,
            workspace: limits.usd,
            calls: limits.calls,
            tokens: limits.tokens,
            time: limits.time,
            only_free: options.until_paid,
        }
    }
}

/// The records behind the agent steps of one run.
pub(crate) struct RunCalls<'a> {
    ctx: Context<'a>,
    run: String,
    answers: Answers,
    budget: Budget,
    ledger: Mutex<Ledger>,
    /// Questions that a batch is asking.
    claimed: Mutex<HashSet<Digest>>,
    /// Notified when questions are released.
    released: Condvar,
}

struct Ledger {
    log: CallLog,
    batches: BatchLog,
    /// Spent by this run.
    run: Spent,
    /// Spent by the workspace before this run; read when first needed.
    before: Option<Spent>,
    /// Reserved for calls in flight.
    reserved: NanoUsd,
    reserved_tokens: u64,
    in_flight: u64,
}

impl<'a> RunCalls<'a> {
    pub(crate) fn new(ctx: Context<'a>, project: &Path, run: &str, budget: Budget) -> Self {
        Self {
            ctx,
            run: run.to_owned(),
            answers: Answers::open(ctx.disk, project, ctx.layout, run),
            budget,
            ledger: Mutex::new(Ledger {
                log: CallLog::new(ctx.disk, ctx.layout, run),
                batches: BatchLog::new(ctx.disk, ctx.layout, run),
                run: Spent::default(),
                before: None,
                reserved: NanoUsd::ZERO,
                reserved_tokens: 0,
                in_flight: 0,
            }),
            claimed: Mutex::default(),
            released: Condvar::new(),
        }
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the cost of a call, or fails if the budget does not allow it.
    fn reserve(&self, ledger: &mut Ledger, sent: &Sent) -> Result<(), Outcome> {
        let budget = &self.budget;
        let refused = |why: String| Err(Outcome::new(OutcomeKind::Budget, why).for_good());
        if budget.only_free && sent.reserved != Some(NanoUsd::ZERO) {
            return refused(format!(
                "agent `{}` ({}) costs money, which --until-paid excludes: run without it",
                sent.agent, sent.provider
            ));
        }
        if budget.run.is_some() || budget.workspace.is_some() {
            let Some(most) = sent.reserved else {
                return refused(format!(
                    "the price of a call of agent `{}` ({}) is unknown, but there is a budget: set `max_usd_per_call` under [agents.{}]",
                    sent.agent, sent.provider, sent.agent
                ));
            };
            let spent = ledger.run.cost + ledger.reserved + most;
            if let Some(limit) = budget.run
                && spent > limit
            {
                return refused(format!(
                    "this call may cost {most}, but only {} of the {limit} for this run are left{}: raise --budget-usd",
                    limit.less(ledger.run.cost + ledger.reserved),
                    ledger.beside()
                ));
            }
            if let Some(limit) = budget.workspace {
                let before = self.before(ledger)?.cost;
                if before + spent > limit {
                    return refused(format!(
                        "this call may cost {most}, but only {} of the {limit} for this workspace are left{}: raise `usd` under [limits]",
                        limit.less(before + ledger.run.cost + ledger.reserved),
                        ledger.beside()
                    ));
                }
            }
        }
        if let Some(limit) = budget.calls
            && (self.before(ledger)?.calls).saturating_add(ledger.run.calls + ledger.in_flight)
                >= limit
        {
            return refused(format!(
                "this workspace has made all of its {limit} calls: raise `calls` under [limits]"
            ));
        }
        let tokens = sent.likely_input + sent.most_output;
        if let Some(limit) = budget.tokens {
            let used = self.before(ledger)?.usage + ledger.run.usage;
            let left = limit.saturating_sub(used.total().saturating_add(ledger.reserved_tokens));
            if tokens > left {
                return refused(format!(
                    "this call may use {tokens} tokens, but only {left} of the {limit} for this workspace are left: raise `tokens` under [limits]"
                ));
            }
        }
        if let Some(limit) = budget.time {
            let used = (self.before(ledger)?.took_ms).saturating_add(ledger.run.took_ms);
            if u128::from(used) >= limit.as_millis() {
                return refused(format!(
                    "the calls of this workspace have used their {}: raise `time` under [limits]",
                    show_duration(limit)
                ));
            }
        }
        ledger.hold(sent);
        Ok(())
    }

    fn before(&self, ledger: &mut Ledger) -> Result<Spent, Outcome> {
        if let Some(before) = ledger.before {
            return Ok(before);
        }
        let before = calls::spent(self.ctx.layout, &self.run).map_err(kept)?;
        ledger.before = Some(before);
        Ok(before)
    }
}

impl Ledger {
    /// Reserves the highest cost and tokens of a call.
    fn hold(&mut self, sent: &Sent) {
        self.reserved = self.reserved + sent.reserved.unwrap_or_default();
        self.reserved_tokens += sent.likely_input + sent.most_output;
        self.in_flight += 1;
    }

    /// Returns a note about calls in flight that have reserved money; empty without any.
    fn beside(&self) -> String {
        match self.in_flight {
            0 => String::new(),
            1 => " beside 1 call in flight".to_owned(),
            calls => format!(" beside {calls} calls in flight"),
        }
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

    fn claim(&self, address: Digest) -> bool {
        self.claimed().insert(address)
    }

    fn release(&self, addresses: &[Digest]) {
        let mut claimed = self.claimed();
        for address in addresses {
            claimed.remove(address);
        }
        self.released.notify_all();
    }

    fn wait(&self, address: Digest, stopped: &dyn Fn() -> bool) {
        let mut claimed = self.claimed();
        while claimed.contains(&address) && !stopped() {
            let waited = self.released.wait_timeout(claimed, LOOK);
            claimed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn keep(&self, answer: ValidAnswer) -> Result<(), Outcome> {
        self.keep_all(vec![answer])
    }

    fn keep_all(&self, answers: Vec<ValidAnswer>) -> Result<(), Outcome> {
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

    fn sending(&self, sent: &Sent, body: &[u8]) -> Result<u64, Outcome> {
        let mut ledger = self.ledger();
        self.reserve(&mut ledger, sent)?;
        let now = self.ctx.clock.now();
        let sent = sent.clone().without_keys(self.ctx.redactor);
        ledger.log.sent(now, &sent, body).map_err(kept)
    }

    fn heard(&self, number: u64, sent: &Sent, heard: Heard, raw: &[u8]) -> Result<Heard, Outcome> {
        let redactor = self.ctx.redactor;
        let raw = redactor.bytes(raw);
        let heard = heard.without_keys(redactor, &raw);
        let mut ledger = self.ledger();
        ledger.reserved = ledger.reserved.less(sent.reserved.unwrap_or_default());
        let tokens = sent.likely_input + sent.most_output;
        ledger.reserved_tokens = ledger.reserved_tokens.saturating_sub(tokens);
        ledger.in_flight = ledger.in_flight.saturating_sub(1);
        ledger.run += Spent::of(sent, Some(&heard));
        let now = self.ctx.clock.now();
        ledger.log.heard(now, number, &heard, &raw).map_err(kept)?;
        Ok(heard)
    }

    fn redactor(&self) -> &Redactor {
        self.ctx.redactor
    }
}
