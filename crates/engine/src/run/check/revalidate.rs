//! Validates outputs again, without a run, after their schemas or checks changed.

use crate::run::check::scopes;
use crate::run::check::validate;
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use crate::steps::cancel::CancelToken;
use crate::steps::worker::JqWorkers;
use milepost_core::base::natural::natural;
use milepost_core::base::path::FilePath;
use milepost_core::base::words;
use milepost_core::expr::scope::Scope;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::{BatchRecord, Made};
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_store::check::schemas::Schemas;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The result of validating batches again.
#[derive(Debug, Default)]
pub(crate) struct Revalidation {
    /// How many are valid.
    pub(crate) valid: u64,
    /// The positions of invalid batches.
    pub(crate) invalid: BTreeSet<usize>,
    /// The positions of batches that were not validated, because the run was stopped.
    pub(crate) left: BTreeSet<usize>,
}

/// Validates the batches that need it, until the run is stopped.
///
/// # Errors
/// When the journal cannot be written.
pub(crate) fn revalidate(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    scan: &StageScan,
    schemas: &Schemas,
    cancel: &Arc<CancelToken>,
) -> Result<Revalidation, RunError> {
    let mut revalidation = Revalidation::default();
    let mut valid = Vec::new();
    let mut opinions = BTreeMap::new();
    for (index, found) in scan.batches.iter().enumerate() {
        if !matches!(found.decision, Ok(Decision::Revalidate(_))) {
            continue;
        }
        let Some(record) = recorded(recorder, stage, found).filter(|_| cancel.reason().is_none())
        else {
            revalidation.left.insert(index);
            continue;
        };
        let said = said(recorder, stage, record);
        let failed = record.failed_keys();
        let judged = holds(
            &recorder.ctx,
            stage,
            found,
            (&record.outputs, &failed),
            schemas,
            cancel,
        )
        .and_then(|scope| {
            let workers = JqWorkers::new(stage, cancel);
            validate::opinion(stage, &scope, said, &workers, recorder.ctx.redactor)
        });
        if cancel.reason().is_some() {
            revalidation.left.insert(index);
            continue;
        }
        let Ok(opinion) = judged else {
            revalidation.invalid.insert(index);
            continue;
        };
        let key = &found.batch.key;
        if opinion != record.opinion() {
            opinions.insert(key.clone(), opinion);
        }
        valid.push(key.clone());
    }
    let count = valid.len() as u64;
    revalidation.valid = count;
    if count > 0 {
        // The checkpoint contains the schemas and the digest of the manifest, which changes here. The outputs do not change, so
        // later stages stay up to date.
        crate::run::record::retire::remove_checkpoint(recorder, &stage.name, stage.number)?;
        recorder.flush()?;
        let summary = format!(
            "{}: {} revalidated, all valid",
            stage.name,
            words::count(count, "batch", "batches")
        );
        let event = Event::Judged {
            stage: stage.name.clone(),
            shared: scan.shared_id.clone(),
            facts: (*scan.shared).clone(),
            batches: valid,
            opinions,
        };
        recorder.record(EventType::Review, stage.actor(), event, summary)?;
    }
    Ok(revalidation)
}

/// Returns the record of a batch.
fn recorded<'a>(
    recorder: &'a Recorder<'_>,
    stage: &Stage,
    found: &BatchScan,
) -> Option<&'a BatchRecord> {
    let known = recorder.state.stages.get(&stage.name)?;
    known.batches.get(&found.batch.key)?.record.as_ref()
}

/// Returns the summary that the steps of a batch reported.
fn said(recorder: &Recorder<'_>, stage: &Stage, record: &BatchRecord) -> Option<Value> {
    let known = recorder.state.stages.get(&stage.name)?;
    let facts = known.shared(record);
    if facts.get(FactKind::Check, "summary").is_some() {
        record.said.as_deref().cloned()
    } else {
        record.summary.as_deref().cloned()
    }
}

/// Validates the outputs of a batch as they are on the disk, except for elements that are recorded as failed. Returns the scope
/// with them.
///
/// # Errors
/// The outcome, if they are invalid.
pub(crate) fn holds(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &BatchScan,
    (outputs, failed): (&[Made], &BTreeSet<String>),
    schemas: &Schemas,
    cancel: &Arc<CancelToken>,
) -> Result<Scope, Outcome> {
    validate::inputs(ctx, stage, found, schemas, cancel)?;
    let mut scope = scopes::of_inputs(ctx, stage, found, ctx.moment(), cancel)?;
    let workers = JqWorkers::new(stage, cancel);
    validate::checks(&stage.requires, &scope, &workers)?;
    for output in &stage.outputs {
        let mut there = Vec::new();
        for made in outputs.iter().filter(|made| made.name == output.name) {
            let file = scopes::source(ctx, &FilePath::workspace(made.path.clone()), cancel)?;
            if output.schema.is_some() || output.columns.is_some() {
                validate::output(schemas, output, &*file, 1)?;
            }
            there.push((file, output.reading()));
        }
        if output.per_round {
            // Programs of the stage see the file of the last iteration.
            there.sort_by(|a, b| natural(&a.0.name(), &b.0.name()));
            there.drain(..there.len().saturating_sub(1));
        }
        let is_list = output.is_many() && !output.per_round;
        scopes::insert(&mut scope, &output.name, is_list, there);
    }
    validate::conservation(stage, &scope, failed, 1)?;
    validate::checks(&stage.checks, &scope, &workers)?;
    Ok(scope)
}
