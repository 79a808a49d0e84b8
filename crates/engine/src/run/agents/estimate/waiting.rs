//! Which batches wait for external agents or for the budget: a run sends none of their calls.

use super::{CostEstimator, called, simulate_apart};
use crate::run::agents::budget::{PricedCall, RefusedCall, Standing};
use crate::run::agents::project_agents::of_stage;
use crate::steps::agent::StageAgents;
use milepost_core::model::call::SentCall;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::reason::Condition;
use milepost_core::model::stage::Stage;
use milepost_core::plan::scan::BatchScan;
use milepost_core::plan::schedule::Waiting;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::batches::standing;
use milepost_store::store::calls;

impl CostEstimator<'_> {
    /// Returns for each batch what its first request waits for: an external agent, or money. With `settled`, no earlier stage changes
    /// its inputs.
    ///
    /// # Errors
    /// When an agent is unavailable.
    pub(crate) fn waiting(
        &self,
        stage: &Stage,
        batches: &[&BatchScan],
        settled: bool,
    ) -> Result<Vec<Option<Waiting>>, String> {
        let outside = self.outside(stage);
        let is_limited = self.budget.is_limited() && self.is_paid(stage);
        if batches.is_empty() || (outside.is_empty() && !is_limited) {
            return Ok(batches.iter().map(|_| None).collect());
        }
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        // A batch does not get from another one what that one cannot pay for.
        let schemas = Schemas::default();
        let simulated = if is_limited {
            simulate_apart(&self.dry_run(stage, &schemas, &agents), batches)
        } else {
            self.simulate(stage, &agents, batches)
        };
        let in_flight = standing(self.ctx.layout).is_ok_and(|(open, _)| open > 0);
        let wait = |sent: SentCall, others: &[SentCall]| {
            if outside.contains(&sent.agent) {
                return Ok(Some(Waiting::Agent(Box::new(sent))));
            }
            // The answer may be paid for already.
            let is_open = sent.batched && in_flight;
            let Some(handle) = agents.named(&sent.agent).filter(|_| !is_open) else {
                return Ok(None);
            };
            let call = PricedCall::of(&sent, &handle.costs);
            let mut expected = self.expected.get();
            let refused = self.refusal(&call, &expected)?;
            if let Some(refused) = refused.as_ref().filter(|refused| !refused.waits) {
                return Ok(Some(Waiting::Money(refused.outcome.message.clone())));
            }
            let all = std::iter::once(&sent).chain(others);
            all.for_each(|sent| expected.hold(sent));
            self.expected.set(expected);
            // Earlier calls may cost less than they reserve.
            Ok(refused.map(|_| Waiting::Unknown(Condition::BudgetAllows)))
        };
        let condition = self.condition(stage, &agents, &outside)?;
        let waiting = simulated.into_iter().map(|batch| match batch.request {
            Some(request) => wait(request.sent, &batch.others),
            None if settled && batch.unknown.is_none() => Ok(None),
            None => Ok(condition.clone().map(Waiting::Unknown)),
        });
        waiting.collect()
    }

    /// Returns why the budget does not allow a call.
    ///
    /// # Errors
    /// When records of calls cannot be read.
    fn refusal(
        &self,
        call: &PricedCall<'_>,
        standing: &Standing,
    ) -> Result<Option<RefusedCall>, String> {
        let mut before = || match self.spent.get() {
            Some(spent) => Ok(*spent),
            None => {
                let spent = calls::spent(self.ctx.layout, "");
                let spent =
                    spent.map_err(|error| Outcome::new(OutcomeKind::Output, error.to_string()))?;
                Ok(*self.spent.get_or_init(|| spent))
            }
        };
        match self.budget.check(call, standing, &mut before) {
            Ok(()) => Ok(None),
            Err(refused) if refused.outcome.kind == OutcomeKind::Budget => Ok(Some(refused)),
            Err(refused) => Err(refused.outcome.message),
        }
    }

    /// Returns for each agent that is called whether its calls cost money, and why the budget allows not even the smallest of them.
    ///
    /// # Errors
    /// When records of calls cannot be read.
    fn smallest_calls(
        &self,
        stage: &Stage,
        agents: &StageAgents,
    ) -> Result<Vec<(bool, Option<String>)>, String> {
        let called = called(&self.ctx, stage);
        let calls = called.iter().filter_map(|(agent, called)| {
            let costs = &agents.named(agent)?.costs;
            Some(PricedCall {
                agent,
                provider: &called.who,
                costs,
                reserved: costs.most(1, 1),
                tokens: 2,
            })
        });
        let refused = calls.map(|call| {
            let why = self.refusal(&call, &self.expected.get())?;
            let why = why.map(|refused| refused.outcome.message);
            Ok((call.reserved != Some(NanoUsd::ZERO), why))
        });
        refused.collect()
    }

    /// Returns the condition under which a batch whose requests are unknown does not wait; `None` if it never waits.
    ///
    /// # Errors
    /// When records of calls cannot be read.
    fn condition(
        &self,
        stage: &Stage,
        agents: &StageAgents,
        outside: &[String],
    ) -> Result<Option<Condition>, String> {
        if !outside.is_empty() {
            let agents = outside.to_vec();
            return Ok(Some(Condition::Answered { agents }));
        }
        // The limits of a workspace are rarely reached.
        let smallest = self.smallest_calls(stage, agents)?;
        let mut refused = smallest.iter();
        let is_open = refused.any(|(is_paid, why)| *is_paid && self.has_budget || why.is_some());
        Ok(is_open.then_some(Condition::BudgetAllows))
    }

    /// Returns why the run pays for no call of the stage's agents; `None` if it may, or one of them is free.
    ///
    /// # Errors
    /// When an agent is unavailable.
    pub(crate) fn unpaid(&self, stage: &Stage) -> Result<Option<String>, String> {
        let called = called(&self.ctx, stage);
        if !self.budget.is_limited() || called.values().any(|called| called.is_external) {
            return Ok(None);
        }
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        let smallest = self.smallest_calls(stage, &agents)?.into_iter();
        let all: Option<Vec<String>> = smallest.map(|(_, why)| why).collect();
        Ok(all.and_then(|all| all.into_iter().next()))
    }
}
