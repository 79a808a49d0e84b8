//! One attempt of one batch: its steps once, or in the iterations of `[refine]`.

use super::batch_context::{BatchContext, StepReport};
pub(crate) use super::iteration::{run_limited, stage_is_over};
use super::{iteration, refine};
use milepost_core::model::outcome::Outcome;

/// Runs the steps in order, once or in iterations. Later steps see the `out` of a step by its name.
///
/// # Errors
/// The outcome of the step that failed, or of a loop that reached its last iteration.
pub(crate) fn attempt(ctx: &mut BatchContext<'_>) -> Result<StepReport, Outcome> {
    match &ctx.stage.refine {
        None => iteration::run_steps(ctx, 1),
        Some(refine) => refine::refine(ctx, refine),
    }
}
