//! Judges the `[[require]]`s of a batch that is about to run, before anything is started, asked or paid for it.

use crate::run::check::scopes;
use crate::run::check::validate;
use crate::run::context::Context;
use crate::steps::alarm::Alarm;
use milepost_core::model::outcome::OutcomeKind;
use milepost_core::model::stage::Stage;
use milepost_core::plan::inputs::Missed;
use milepost_core::plan::scan::BatchScan;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the precondition that is known not to hold. Where an earlier stage may still change what the batch reads, only those
/// are judged that mention nothing of it. One whose test fails is left to the attempt, which validates the inputs first.
pub(crate) fn refused(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &BatchScan,
    is_settled: bool,
) -> Option<Missed> {
    let requires = stage.requires.iter();
    let known = requires.filter(|require| is_settled || require.needs_no_input(stage));
    let known: Vec<_> = known.cloned().collect();
    if known.is_empty() {
        return None;
    }
    let moment = ctx.moment();
    let scope = if is_settled {
        let alarm = Alarm::new(Arc::new(AtomicBool::new(false)));
        scopes::of_inputs(ctx, stage, found, moment, &alarm).ok()?
    } else {
        scopes::of_values(ctx, found, moment)
    };
    let failed = validate::checks(&known, &scope).err()?;
    let is_judged = failed.kind == OutcomeKind::Check && failed.details.is_empty();
    is_judged.then_some(Missed {
        kind: failed.kind,
        code: Some(failed.code),
        why: failed.message,
    })
}
