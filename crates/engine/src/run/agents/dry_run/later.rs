//! Finds out what the steps behind the one whose request ended a dry run would ask.

use super::{DryRun, NoCalls};
use crate::steps::agent::{count_items, will_run};
use crate::steps::attempt::run_limited;
use crate::steps::batch_context::BatchContext;
use milepost_core::model::step::Step;

/// The calls of later steps whose prompts depend on the answers before them.
#[derive(Debug, Default)]
pub(crate) struct LaterCalls {
    /// Agent and calls of each step.
    pub(crate) steps: Vec<(String, u64)>,
    /// True if an answer decides whether there are more.
    pub(crate) is_open: bool,
}

impl DryRun<'_> {
    /// Runs the agent steps after the one at this position. Requests that are known are recorded, the others are counted.
    pub(super) fn later(
        &self,
        batch_ctx: &mut BatchContext<'_>,
        reached: usize,
        calls: &NoCalls<'_>,
    ) -> LaterCalls {
        let mut later = LaterCalls::default();
        for step in self.stage.steps.iter().skip(reached + 1) {
            let asked = step.kind.agent();
            let agent = asked.and_then(|it| self.ctx.settings.agent(self.ctx.pipeline, &it.agent));
            let Some(agent) = agent.filter(|agent| !agent.is_free()) else {
                continue;
            };
            let prompts = match will_run(batch_ctx, step) {
                // The batch waits here, so later steps do not matter.
                Some(true) if agent.is_external() => break,
                Some(false) => continue,
                Some(true) => prompts(batch_ctx, step),
                None => None,
            };
            let Some(prompts) = prompts else {
                later.is_open = true;
                continue;
            };
            let before = calls.lookups();
            let ended = run_limited(batch_ctx, step);
            if calls.lookups() > before || ended.is_ok() {
                continue;
            }
            if asked.is_some_and(|asked| asked.questions) {
                // Other batches may ask the same.
                later.is_open = true;
            } else {
                later.steps.push((agent.name.clone(), prompts));
            }
        }
        later
    }
}

/// Returns the number of prompts of a step; `None` if an earlier step decides it.
fn prompts(ctx: &BatchContext<'_>, step: &Step) -> Option<u64> {
    match step.kind.agent()?.each.as_deref() {
        Some(each) => count_items(ctx, each),
        None => Some(1),
    }
}
