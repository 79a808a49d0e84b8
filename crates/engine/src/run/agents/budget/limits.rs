//! The budget of a run, and whether it allows a call.

use crate::steps::agent::costs::CallCosts;
use milepost_core::base::duration::show_duration;
use milepost_core::model::call::{CallResponse, SentCall, Spent};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Limits;
use milepost_core::plan::options::RunOptions;
use std::time::Duration;

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
    /// Allows calls of free agents only.
    pub(crate) only_free: bool,
}

/// A call, as far as a budget depends on it.
pub(crate) struct PricedCall<'a> {
    pub(crate) agent: &'a str,
    pub(crate) provider: &'a str,
    pub(crate) costs: &'a CallCosts,
    /// The most that it may cost; `None` if no price is known.
    pub(crate) reserved: Option<NanoUsd>,
    /// The most tokens of its prompt and its answer.
    pub(crate) tokens: u64,
}

impl<'a> PricedCall<'a> {
    pub(crate) fn of(sent: &'a SentCall, costs: &'a CallCosts) -> Self {
        Self {
            agent: &sent.agent,
            provider: &sent.provider,
            costs,
            reserved: sent.reserved,
            tokens: sent.most_tokens(),
        }
    }
}

/// The spending of a run, and the reservations of its calls in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    run: Spent,
    reserved: NanoUsd,
    reserved_tokens: u64,
    in_flight: u64,
}

impl Standing {
    /// Reserves the highest cost and tokens of a call.
    pub(crate) fn hold(&mut self, sent: &SentCall) {
        self.reserved = self.reserved + sent.reserved.unwrap_or_default();
        self.reserved_tokens = self.reserved_tokens.saturating_add(sent.most_tokens());
        self.in_flight += 1;
    }

    /// Replaces the reservation of a call by its cost.
    pub(super) fn settle(&mut self, sent: &SentCall, response: &CallResponse) {
        self.reserved = self.reserved.less(sent.reserved.unwrap_or_default());
        self.reserved_tokens = self.reserved_tokens.saturating_sub(sent.most_tokens());
        self.in_flight = self.in_flight.saturating_sub(1);
        self.run += Spent::of(sent, Some(response));
    }
}

/// Why a call must not be sent now.
pub(crate) struct RefusedCall {
    pub(crate) outcome: Outcome,
    /// True if it may be sent once calls in flight have cost less than they reserve.
    pub(crate) waits: bool,
}

impl RefusedCall {
    fn for_good(why: String) -> Self {
        Self::from(Outcome::new(OutcomeKind::Budget, why).for_good())
    }

    fn while_reserved(why: String, waits: bool) -> Self {
        Self {
            waits,
            ..Self::for_good(why)
        }
    }
}

impl From<Outcome> for RefusedCall {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            waits: false,
        }
    }
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

    /// Returns true if anything is limited.
    pub(crate) fn is_limited(&self) -> bool {
        *self != Self::default()
    }

    /// Checks that it allows a call. `before` returns what the workspace had spent before the run.
    ///
    /// # Errors
    /// The reason why the call must not be sent.
    pub(crate) fn check(
        &self,
        call: &PricedCall<'_>,
        standing: &Standing,
        before: &mut dyn FnMut() -> Result<Spent, Outcome>,
    ) -> Result<(), RefusedCall> {
        self.check_price(call)?;
        self.check_money(call.reserved, standing, before)?;
        let run = &standing.run;
        if let Some(limit) = self.calls
            && before()?
                .calls
                .saturating_add(run.calls + standing.in_flight)
                >= limit
        {
            return Err(RefusedCall::for_good(format!(
                "this workspace has made all of its {limit} calls: raise `calls` under [limits]"
            )));
        }
        if let Some(limit) = self.tokens {
            let tokens = call.tokens;
            let used = (before()?.usage + run.usage).total();
            let left = limit.saturating_sub(used.saturating_add(standing.reserved_tokens));
            if tokens > left {
                return Err(RefusedCall::while_reserved(
                    format!(
                        "this call may use {tokens} tokens, but only {left} of the {limit} for this workspace are left: raise `tokens` under [limits]"
                    ),
                    standing.reserved_tokens > 0,
                ));
            }
        }
        if let Some(limit) = self.time
            && u128::from(before()?.took_ms.saturating_add(run.took_ms)) >= limit.as_millis()
        {
            return Err(RefusedCall::for_good(format!(
                "the calls of this workspace have used their {}: raise `time` under [limits]",
                show_duration(limit)
            )));
        }
        Ok(())
    }

    /// Checks that the highest cost of a call is known, if the budget depends on it.
    fn check_price(&self, call: &PricedCall<'_>) -> Result<(), RefusedCall> {
        let &PricedCall {
            agent,
            provider,
            costs,
            reserved,
            ..
        } = call;
        if self.only_free && reserved != Some(NanoUsd::ZERO) {
            return Err(RefusedCall::for_good(format!(
                "agent `{agent}` ({provider}) costs money, which --until-paid excludes: run without it"
            )));
        }
        if reserved.is_none() && (self.run.is_some() || self.workspace.is_some()) {
            let or_price = costs.model().map_or_else(String::new, |model| {
                format!(", or the price of `{model}` in prices.toml")
            });
            return Err(RefusedCall::for_good(format!(
                "the price of a call of agent `{agent}` ({provider}) is unknown, but there is a budget: set `max_usd_per_call` under [agents.{agent}]{or_price}"
            )));
        }
        Ok(())
    }

    fn check_money(
        &self,
        reserved: Option<NanoUsd>,
        standing: &Standing,
        before: &mut dyn FnMut() -> Result<Spent, Outcome>,
    ) -> Result<(), RefusedCall> {
        let most = reserved.unwrap_or_default();
        let used = standing.run.cost + standing.reserved;
        let limits = [
            (self.run, NanoUsd::ZERO, "run", "raise --budget-usd"),
            (
                self.workspace,
                match self.workspace {
                    Some(_) => before()?.cost,
                    None => NanoUsd::ZERO,
                },
                "workspace",
                "raise `usd` under [limits]",
            ),
        ];
        for (limit, before, of, next) in limits {
            let Some(limit) = limit else { continue };
            let left = limit.less(before + used);
            if most > left {
                let [most, left, limit] = NanoUsd::apart([most, left, limit]);
                let beside = match standing.in_flight {
                    0 => String::new(),
                    1 => " beside 1 call whose cost is not known".to_owned(),
                    calls => format!(" beside {calls} calls whose cost is not known"),
                };
                return Err(RefusedCall::while_reserved(
                    format!(
                        "this call may cost {most}, but only {left} of the {limit} for this {of} are left{beside}: {next}"
                    ),
                    standing.reserved > NanoUsd::ZERO,
                ));
            }
        }
        Ok(())
    }
}
