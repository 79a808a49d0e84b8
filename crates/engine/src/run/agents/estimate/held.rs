//! Which batches of a plan wait for the budget: a run would send none of their calls.

use super::CostEstimator;
use crate::run::agents::budget::{Budget, Standing};
use crate::run::agents::project_agents::of_stage;
use milepost_core::model::call::Spent;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use milepost_core::plan::scan::BatchScan;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::calls;
use serde::Serialize;
use std::collections::HashSet;

/// Batches that wait for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct HeldForBudget {
    /// Batches that wait.
    pub batches: u64,
    /// Why the first of them makes no call, and what to change.
    pub why: String,
}

impl CostEstimator<'_> {
    /// Returns the positions of the batches that wait for the budget before their first call, and why. If the stage does not tolerate
    /// failures, all batches behind the first of them wait too.
    ///
    /// # Errors
    /// When an agent is unavailable, or records of calls cannot be read.
    pub(crate) fn held(
        &self,
        stage: &Stage,
        batches: &[&BatchScan],
        budget: &Budget,
        tolerates: bool,
    ) -> Result<Option<(Vec<usize>, String)>, String> {
        if batches.is_empty() || !budget.is_limited() || !self.is_paid(stage) {
            return Ok(None);
        }
        let agents = of_stage(&self.ctx, stage, self.agents)?;
        let schemas = Schemas::default();
        let dry_run = self.dry_run(stage, &schemas, &agents);
        let mut known: Option<Spent> = None;
        let mut before = || match known {
            Some(spent) => Ok(spent),
            None => {
                let spent = calls::spent(self.ctx.layout, "");
                let spent =
                    spent.map_err(|error| Outcome::new(OutcomeKind::Output, error.to_string()))?;
                Ok(*known.insert(spent))
            }
        };
        let mut held = Vec::new();
        let mut why = String::new();
        for (at, batch) in batches.iter().enumerate() {
            let simulated = dry_run.of(batch, &HashSet::new());
            let request = simulated.request.as_ref().map(|request| &request.sent);
            let Some(sent) = request else { continue };
            let Some(handle) = agents.named(&sent.agent) else {
                continue;
            };
            let call = (sent, &handle.costs);
            let Err(refusal) = budget.check(call, &Standing::default(), &mut before) else {
                if held.is_empty() {
                    // From here on the budget depends on what calls cost.
                    return Ok(None);
                }
                continue;
            };
            if refusal.outcome.kind != OutcomeKind::Budget {
                return Err(refusal.outcome.message);
            }
            if held.is_empty() {
                why = refusal.outcome.message;
            }
            if !tolerates {
                held.extend(at..batches.len());
                break;
            }
            held.push(at);
        }
        Ok((!held.is_empty()).then_some((held, why)))
    }
}
