//! One attempt of one batch: its steps once, or in the iterations of `[refine]`.

pub(crate) use super::iteration::stage_is_over;
use super::work::{Said, Work};
use super::{iteration, refine};
use milepost_core::model::outcome::Outcome;

/// Does the steps in turn, once or in rounds. What a step makes is a name for those after it.
///
/// # Errors
/// The outcome of the step that failed for good, or of rounds of which none was right.
pub(crate) fn attempt(work: &mut Work<'_>) -> Result<Said, Outcome> {
    match &work.stage.refine {
        None => iteration::round(work, 1),
        Some(refine) => refine::rounds(work, refine),
    }
}
