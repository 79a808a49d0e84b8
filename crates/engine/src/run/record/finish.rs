//! Ends a stage: its manifest, its checkpoint, its progress file.

use crate::run::error::RunError;
use crate::run::record::protect;
use crate::run::record::recorder::{Recorder, counted};
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::model::approval::Approval;
use milepost_core::model::call::Spent;
use milepost_core::model::checkpoint::{
    Checkpoint, Checksums, FORMAT, Progress, ProgressStatus, Status,
};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::fingerprint::{FactKind, FactValue};
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{Phase, StageState};
use milepost_core::plan::scan::StageScan;
use milepost_core::plan::{lineage, overrides};
use milepost_store::store::{checkpoint, layout, progress};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most input files that a checkpoint lists; the manifest lists all.
const LISTED: usize = 100;

/// Returns the status of a stage by the state of its batches.
pub(crate) fn status(recorder: &Recorder<'_>, stage: &Stage, survey: &StageScan) -> Option<Status> {
    let known = recorder.state.stages.get(&stage.name);
    let mut partial = false;
    for found in &survey.batches {
        let batch = known.and_then(|known| known.batches.get(&found.batch.key));
        let failed = batch.is_some_and(|batch| matches!(batch.phase, Phase::Failed { .. }));
        match batch.and_then(|batch| batch.record.as_ref()) {
            // Its input is gone: the next run rebuilds it.
            Some(record) if !failed && record.stale.is_some() => return None,
            Some(record) if !failed => partial |= record.failure().is_some(),
            _ if failed => partial = true,
            _ => return None,
        }
    }
    Some(if partial {
        Status::Partial
    } else {
        Status::Complete
    })
}

/// Returns true if an earlier stage that this one reads from is partial, which makes this one partial too.
pub(crate) fn takes_over_partial(recorder: &Recorder<'_>, stage: &Stage) -> bool {
    let upstream = lineage::upstream(recorder.ctx.pipeline, stage);
    upstream.iter().any(|up| {
        let known = recorder.state.stages.get(&up.name);
        known.and_then(|known| known.status) == Some(Status::Partial)
    })
}

/// Writes manifest and checkpoint, records the checkpoint, and seals the journal.
///
/// # Errors
/// When the disk fails.
pub(crate) fn checkpoint(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    survey: &StageScan,
    status: Status,
) -> Result<(), RunError> {
    let ctx = recorder.ctx;
    // A checkpoint must not exist beside a manifest that it does not describe.
    recorder.flush()?;
    protect::put_checkpoint_away(recorder, &stage.name, stage.number)?;
    let manifest_digest = recorder.write_manifest(stage)?;
    let nothing = StageState::default();
    let known = recorder.state.stages.get(&stage.name).unwrap_or(&nothing);
    let records: Vec<&BatchRecord> = survey
        .batches
        .iter()
        .filter_map(|found| known.batches.get(&found.batch.key)?.record.as_ref())
        .collect();
    let failed: BTreeMap<String, String> = survey
        .batches
        .iter()
        .filter_map(|found| {
            let batch = known.batches.get(&found.batch.key)?;
            let outcome = match (&batch.phase, &batch.record) {
                (Phase::Failed { outcome }, _) => outcome.to_string(),
                (_, Some(record)) => record.failure()?.to_string(),
                _ => return None,
            };
            Some((found.batch.key.clone(), outcome))
        })
        .collect();
    let files: Vec<_> = records.iter().flat_map(|record| &record.outputs).collect();
    let only = match files.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let inputs = inputs(&records);
    let of_kind = |wanted: &dyn Fn(FactKind) -> bool| -> BTreeMap<String, String> {
        let facts = survey.shared.iter().filter(|(key, _)| wanted(key.kind));
        facts
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    };
    let mut spent: Option<Spent> = None;
    for one in records.iter().filter_map(|record| record.spent.as_deref()) {
        *spent.get_or_insert_default() += *one;
    }
    let milliseconds: u64 = records.iter().map(|record| record.duration_ms).sum();
    let written = Checkpoint {
        stage: stage.name.clone(),
        number: stage.number,
        status,
        timestamp: ctx.clock.now(),
        output_file: only.map(|made| made.path.clone()),
        output_files: if only.is_some() {
            Vec::new()
        } else {
            declared_outputs(stage)
        },
        element_count: sum(records.iter().map(|record| record.elements)),
        checksums: Checksums {
            input: inputs_digest(&inputs),
            output: only.map_or(manifest_digest, |made| made.digest),
        },
        summary: records
            .iter()
            .filter_map(|record| record.summary.as_deref().cloned())
            .reduce(merged),
        failed,
        verdict: records
            .iter()
            .filter_map(|record| record.verdict)
            .reduce(|a, b| a && b),
        overrides: overrides::of_stage(&stage.name, known),
        approval: approval(recorder, stage),
        batches: survey.batches.len() as u64,
        fingerprint: of_kind(&|kind| !kind.is_judged() && kind != FactKind::Detail),
        inputs: inputs
            .iter()
            .take(LISTED)
            .map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect(),
        schemas: of_kind(&|kind| kind == FactKind::Schema),
        manifest: layout::manifest(&stage.name),
        run_id: recorder.run_id().to_owned(),
        duration_s: milliseconds as f64 / 1000.0,
        spent,
        milepost: ctx.settings.version.clone(),
        format: FORMAT,
    };
    let digest = checkpoint::write(ctx.disk, ctx.layout, &written)?;
    let summary = format!(
        "{} {}: {}",
        stage.name,
        status.word(),
        counted(written.batches, "batch", "batches")
    );
    let event = Event::CheckpointWritten {
        stage: stage.name.clone(),
        number: stage.number,
        status,
        digest,
    };
    recorder.record(
        EventType::Complete,
        stage.actor(),
        event,
        summary,
        vec![layout::checkpoint(stage.number).to_string()],
    )?;
    recorder.seal()
}

/// Returns the last approval of a stage that declares `[approve]`.
fn approval(recorder: &Recorder<'_>, stage: &Stage) -> Option<Approval> {
    stage.approve.as_ref()?;
    let approved = recorder.state.approvals.get(&stage.name)?;
    Some(approved.approval.clone())
}

fn declared_outputs(stage: &Stage) -> Vec<String> {
    stage
        .outputs
        .iter()
        .map(|output| output.path.pattern())
        .collect()
}

fn sum(counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.flatten().reduce(|a, b| a + b)
}

/// Returns the input files of batches with their digests.
pub(crate) fn inputs<'a>(records: &[&'a BatchRecord]) -> BTreeMap<&'a str, &'a FactValue> {
    let facts = records.iter().flat_map(|record| record.facts.iter());
    facts
        .filter(|(key, _)| key.kind == FactKind::Input)
        .map(|(key, value)| (&*key.name, value))
        .collect()
}

/// Returns the digest of one input file; for several files, of their list in the format of `sha256sum`.
pub(crate) fn inputs_digest(inputs: &BTreeMap<&str, &FactValue>) -> Digest {
    if inputs.len() == 1
        && let Some(digest) = inputs.values().find_map(|value| value.digest())
    {
        return digest;
    }
    let mut hasher = Hasher::new();
    for (name, value) in inputs {
        let value = value.to_string();
        let hex = value.strip_prefix("sha256:").unwrap_or(&value);
        hasher.update(format!("{hex}  {name}\n"));
    }
    hasher.finish()
}

/// Merges the summaries of two batches: adds numbers, joins lists, merges objects, and keeps the first of other values.
pub(crate) fn merged(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_u64(), b.as_u64()) {
            (Some(a), Some(b)) => json!(a + b),
            _ => json!(a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0)),
        },
        (Value::Array(mut a), Value::Array(b)) => {
            a.extend(b);
            a.truncate(1000);
            Value::Array(a)
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut all: Map<String, Value> = a;
            for (key, value) in b {
                let joined = match all.remove(&key) {
                    Some(first) => merged(first, value),
                    None => value,
                };
                all.insert(key, joined);
            }
            Value::Object(all)
        }
        (a, _) => a,
    }
}

/// Returns the content of the progress file.
pub(crate) fn progress_of(
    recorder: &Recorder<'_>,
    stage: &Stage,
    survey: &StageScan,
    running: &BTreeSet<u64>,
    status: ProgressStatus,
) -> Progress {
    let known = recorder.state.stages.get(&stage.name);
    let mut completed = Vec::new();
    let mut failed = Vec::new();
    for found in &survey.batches {
        let Some(batch) = known.and_then(|known| known.batches.get(&found.batch.key)) else {
            continue;
        };
        let is_lacking = batch
            .record
            .as_ref()
            .is_some_and(|record| record.failure().is_some());
        if is_lacking || matches!(batch.phase, Phase::Failed { .. }) {
            failed.push(found.batch.key.clone());
        } else if batch.phase == Phase::Complete {
            completed.push(number_of(found));
        }
    }
    Progress {
        stage: stage.name.clone(),
        total_batches: survey.batches.len() as u64,
        completed_batches: progress::numbers(&completed),
        current_batch: running
            .iter()
            .filter_map(|&position| survey.batches.get(position as usize - 1))
            .map(number_of)
            .min(),
        failed_batches: failed,
        status,
        run_id: recorder.run_id().to_owned(),
        pid: std::process::id(),
        updated: recorder.ctx.clock.now(),
        checksum: None,
    }
}

/// Returns the number of a batch for people: the one in its file name, otherwise its position.
fn number_of(found: &milepost_core::plan::scan::BatchScan) -> u64 {
    let named = found.batch.items.iter().find_map(|(_, item)| match item {
        milepost_core::plan::expand::BatchItem::File(file) => file.path.number(),
        milepost_core::plan::expand::BatchItem::Value(_) => None,
    });
    match (found.batch.items.len(), named) {
        (1, Some(number)) => number,
        _ => found.batch.position,
    }
}
