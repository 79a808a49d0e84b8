//! Decides which batches are accepted, and why others are refused.

use super::kinds::Kinds;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::scan_stage;
use crate::run::check::batch_scanner::Keep;
use crate::run::check::revalidate::holds;
use crate::run::record::recorder::Recorder;
use milepost_core::base::path::RelPath;
use milepost_core::model::reason::Reason;
use milepost_core::model::record::{BatchRecord, Made};
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::options::invocation::Invocation;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_store::check::schemas::Schemas;
use milepost_store::store::files::digest_of;
use milepost_store::store::layout::Layout;
use std::sync::Arc;

pub(super) fn scan(
    recorder: &Recorder<'_>,
    stage: &Stage,
    policy: RebuildPolicy,
) -> Result<StageScan, OpsError> {
    scan_stage(&recorder.ctx, stage, &recorder.state, policy, Keep::All).map_err(OpsError::World)
}

/// Returns the outputs of a batch to record; `None` if there is nothing to accept.
///
/// # Errors
/// When the batch cannot be accepted: the reasons, a line each.
pub(super) fn choose(
    recorder: &Recorder<'_>,
    stage: &Stage,
    found: &BatchScan,
    kinds: &Kinds,
    invocation: &Invocation,
) -> Result<Option<Vec<Made>>, Vec<String>> {
    let name = batch_name(&stage.name, &found.batch.key);
    let reasons = match &found.decision {
        Ok(Decision::Will(reasons)) => reasons,
        Ok(_) => return Ok(None),
        Err(why) => return Err(vec![format!("{name}: {why}")]),
    };
    let record = record_of(recorder, stage, &found.batch.key);
    let altered: Vec<&RelPath> = reasons.iter().filter_map(altered).collect();
    let Some(record) = record else {
        let path = altered.first();
        return path.map_or(Ok(None), |path| {
            let rebuild = invocation.run(&["--force", &name]);
            Err(vec![format!(
                "{name}: {path} is untracked: move it away, or rebuild it with `{rebuild}`"
            )])
        });
    };
    let is_wanted = if kinds.is_empty() {
        !altered.is_empty() || record.pin.is_some()
    } else {
        reasons
            .iter()
            .any(|reason| matches!(reason, Reason::Changed(change) if kinds.has(change)))
    };
    if !is_wanted {
        return Ok(None);
    }
    let mut refused = Vec::new();
    for reason in reasons {
        let why = match reason {
            Reason::Deleted { path } => format!("{path} was deleted"),
            Reason::Renamed { from, to } => format!("{from} was renamed to {to}"),
            Reason::Modified { path } if !kinds.is_empty() => {
                format!("{path} was modified by hand: accept that first, without `--change`")
            }
            Reason::Changed(change) if !kinds.is_empty() && !kinds.has(change) => {
                format!(
                    "{} changed too, and `--change` does not name it",
                    change.fact
                )
            }
            Reason::Failed { outcome } => format!("it failed: {outcome}"),
            Reason::Stale { input } if !kinds.is_empty() => {
                format!("{input} changed while the batch ran")
            }
            _ => continue,
        };
        refused.push(format!("{name}: {why}"));
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let outputs: Vec<Made> = record
        .outputs
        .iter()
        .map(|made| {
            at_present(recorder.ctx.layout, made).map_err(|why| vec![format!("{name}: {why}")])
        })
        .collect::<Result<_, _>>()?;
    let (schemas, never) = (Schemas::default(), Arc::default());
    let failed = record.failed_keys();
    match holds(
        &recorder.ctx,
        stage,
        found,
        (&outputs, &failed),
        &schemas,
        &never,
    ) {
        Ok(_) => Ok(Some(outputs)),
        Err(outcome) => {
            let mut lines = vec![format!("{name}: {outcome}")];
            lines.extend(outcome.details.iter().map(|line| format!("  {line}")));
            Err(lines)
        }
    }
}

fn altered(reason: &Reason) -> Option<&RelPath> {
    match reason {
        Reason::Modified { path } => Some(path),
        _ => None,
    }
}

pub(super) fn at_present(layout: &Layout, made: &Made) -> Result<Made, String> {
    let found = digest_of(&layout.at(&made.path));
    let found = found.map_err(|error| format!("cannot read `{}`: {error}", made.path))?;
    let (digest, size) = found.ok_or_else(|| format!("{} does not exist", made.path))?;
    Ok(Made {
        digest,
        size,
        ..made.clone()
    })
}

/// Returns the record of a batch.
pub(super) fn record_of<'a>(
    recorder: &'a Recorder<'_>,
    stage: &Stage,
    key: &str,
) -> Option<&'a BatchRecord> {
    let known = recorder.state.stages.get(&stage.name);
    known.and_then(|known| known.batches.get(key)?.record.as_ref())
}
