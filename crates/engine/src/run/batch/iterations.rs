//! Saved iterations of `[refine]` of unfinished batches.

use crate::run::batch::stage_context::{StageContext, stale};
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::steps::batch_context::IterationStore;
use milepost_core::base::digest::Digest;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::reason::Reason;
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_store::store::iterations::{self, IterationError, SavedIterations};
use milepost_store::store::scratch::Scratch;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The saved iterations of one attempt.
pub(crate) struct AttemptIterations<'a> {
    stage_ctx: &'a StageContext<'a>,
    found: &'a BatchScan,
    scratch: &'a Scratch,
    kept: RefCell<SavedIterations>,
    /// Whether iterations of an earlier run are used.
    continues: bool,
    over: Cell<bool>,
}

impl<'a> AttemptIterations<'a> {
    /// Opens the saved iterations of an attempt. With `--force` or `--fresh`, the attempt starts with the first iteration.
    pub(crate) fn new(
        stage_ctx: &'a StageContext<'a>,
        found: &'a BatchScan,
        scratch: &'a Scratch,
    ) -> Self {
        let facts = format!("{} {}", stage_ctx.shared, found.own.coarse_id());
        let ctx = &stage_ctx.ctx;
        let (stage, batch) = (&stage_ctx.stage.name, &found.batch.key);
        let forced = matches!(&found.decision, Ok(Decision::Will(reasons)) if reasons.contains(&Reason::Forced));
        Self {
            stage_ctx,
            found,
            scratch,
            kept: RefCell::new(SavedIterations::new(
                ctx.disk,
                ctx.layout,
                stage,
                batch,
                Digest::of(facts),
            )),
            continues: !forced && !stage_ctx.fresh,
            over: Cell::new(false),
        }
    }

    /// Handles a failed attempt: if its loop had ended, the saved iterations are removed.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn failed(&self) -> Result<(), Outcome> {
        if self.over.get() {
            self.kept.borrow_mut().clear().map_err(refused)?;
        }
        Ok(())
    }
}

fn refused(error: IterationError) -> Outcome {
    Outcome::new(OutcomeKind::Output, error.to_string()).for_good()
}

impl IterationStore for AttemptIterations<'_> {
    fn resume(&self) -> Result<Vec<Value>, Outcome> {
        let mut kept = self.kept.borrow_mut();
        if !self.continues {
            kept.clear().map_err(refused)?;
            return Ok(Vec::new());
        }
        let found = kept.read().map_err(refused)?;
        if let Some(last) = found.last() {
            kept.restore(last, self.scratch).map_err(refused)?;
        }
        Ok(found.into_iter().map(|round| round.note).collect())
    }

    fn keep(&self, number: u32, note: Value) -> Result<(), Outcome> {
        // An iteration from an input that changed meanwhile cannot be continued.
        if stale(self.stage_ctx, self.found)?.is_some() {
            return Ok(());
        }
        let mut kept = self.kept.borrow_mut();
        kept.keep(self.scratch, number, note).map_err(refused)?;
        Ok(())
    }

    fn content(&self, digest: Digest) -> Result<Vec<u8>, Outcome> {
        self.kept.borrow().content(digest).map_err(refused)
    }

    fn over(&self) {
        self.over.set(true);
    }
}

/// Removes the saved iterations of stages that no longer have `[refine]`.
///
/// # Errors
/// When the disk fails.
pub(crate) fn tidy_stages(ctx: &Context<'_>) -> Result<(), RunError> {
    let stages = ctx.pipeline.stages.iter();
    let refined = stages.filter(|stage| stage.refine.is_some());
    let names = refined.map(|stage| stage.name.as_str());
    Ok(iterations::remove_stages_except(
        ctx.disk, ctx.layout, names,
    )?)
}

/// Removes the saved iterations of batches that are up to date or no longer exist. `will` are the batches that run.
///
/// # Errors
/// When the disk fails.
pub(crate) fn tidy(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &StageScan,
    will: &[usize],
) -> Result<(), RunError> {
    if stage.refine.is_none() {
        return Ok(());
    }
    let will: BTreeSet<usize> = will.iter().copied().collect();
    let open = found.batches.iter().enumerate().filter(|(index, batch)| {
        let undecided = Ok(&Decision::UpToDate) != batch.decision.as_ref();
        will.contains(index) || undecided
    });
    let keys = open.map(|(_, batch)| batch.batch.key.as_str());
    Ok(iterations::remove_except(
        ctx.disk,
        ctx.layout,
        &stage.name,
        keys,
    )?)
}
