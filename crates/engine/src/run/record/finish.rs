//! Ends a stage: its manifest, its checkpoint, its progress file.

use crate::run::check::by_page::SHOWN;
use crate::run::error::RunError;
use crate::run::record::protect;
use crate::run::record::recorder::Recorder;
use milepost_core::base::digest::Digest;
use milepost_core::base::words;
use milepost_core::model::approval::Approval;
use milepost_core::model::checkpoint::{
    Checkpoint, Checksums, FORMAT, Progress, ProgressStatus, Status,
};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{BatchState, Phase, StageState};
use milepost_core::model::totals;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::{lineage, overrides};
use milepost_store::store::{checkpoint, layout, progress};
use std::collections::{BTreeMap, BTreeSet};

/// The most input files that a checkpoint lists; the manifest lists all.
const LISTED: usize = 100;

/// Returns the status of a stage by the state of its batches.
pub(crate) fn status(recorder: &Recorder<'_>, stage: &Stage, scan: &StageScan) -> Option<Status> {
    if !scan.ahead.is_empty() {
        return None;
    }
    let known = recorder.state.stages.get(&stage.name);
    let mut partial = false;
    for found in &scan.batches {
        let batch = known.and_then(|known| known.batches.get(&found.batch.key));
        let failed = batch.is_some_and(|batch| matches!(batch.phase, Phase::Failed { .. }));
        match batch.and_then(|batch| batch.record.as_ref()) {
            // An input changed while the batch ran: the next run rebuilds it.
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
    scan: &StageScan,
    status: Status,
) -> Result<(), RunError> {
    let ctx = recorder.ctx;
    // A checkpoint must not exist beside a manifest that it does not describe.
    recorder.flush()?;
    protect::put_checkpoint_away(recorder, &stage.name, stage.number)?;
    let manifest = recorder.write_manifest(stage)?;
    let totals = manifest.totals();
    let nothing = StageState::default();
    let known = recorder.state.stages.get(&stage.name).unwrap_or(&nothing);
    let failed: BTreeMap<String, String> = scan
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
    let only = if totals.files == 1 {
        known.outputs().next()
    } else {
        None
    };
    let only = only.map(|(_, made)| made);
    let first = known.first(SHOWN).into_iter().map(|(_, batch)| batch);
    let inputs = totals::inputs(first);
    let of_kind = |wanted: &dyn Fn(FactKind) -> bool| -> BTreeMap<String, String> {
        let facts = scan.shared.iter().filter(|(key, _)| wanted(key.kind));
        facts
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    };
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
        element_count: totals.elements,
        checksums: Checksums {
            input: totals.inputs.unwrap_or_else(|| Digest::of("")),
            output: only.map_or(manifest.digest, |made| made.digest),
        },
        summary: totals.summary,
        failed,
        verdict: totals.verdict,
        overrides: overrides::of_stage(&stage.name, known),
        approval: approval(recorder, stage),
        batches: scan.count(),
        fingerprint: of_kind(&|kind| !kind.only_validates() && kind != FactKind::Detail),
        inputs: inputs
            .iter()
            .take(LISTED)
            .map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect(),
        schemas: of_kind(&|kind| kind == FactKind::Schema),
        manifest: layout::manifest(&stage.name),
        run_id: recorder.run_id().to_owned(),
        duration_s: totals.milliseconds as f64 / 1000.0,
        spent: totals.spent,
        milepost: ctx.settings.version.clone(),
        format: FORMAT,
    };
    let digest = checkpoint::write(ctx.disk, ctx.layout, &written)?;
    let summary = format!(
        "{} {}: {}",
        stage.name,
        status.word(),
        words::count(written.batches, "batch", "batches")
    );
    let event = Event::CheckpointWritten {
        stage: stage.name.clone(),
        number: stage.number,
        status,
        digest,
    };
    recorder.record_with(
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

/// Returns the content of the progress file.
pub(crate) fn progress_of(
    recorder: &Recorder<'_>,
    stage: &Stage,
    scan: &StageScan,
    running: &BTreeSet<usize>,
    status: ProgressStatus,
) -> Progress {
    let known = recorder.state.stages.get(&stage.name);
    let is_failed = |batch: &BatchState| {
        let record = batch.record.as_ref();
        matches!(batch.phase, Phase::Failed { .. })
            || record.is_some_and(|record| record.failure().is_some())
    };
    let is_complete = |batch: &BatchState| batch.phase == Phase::Complete && !is_failed(batch);
    let found = scan.batches.iter();
    let known_of = |found: &BatchScan| known?.batches.get(&found.batch.key);
    // Outputs that are out of date are not done until this run has rebuilt or validated them.
    let is_done = |found: &BatchScan| {
        let is_of_run = |record: &BatchRecord| match found.decision {
            Ok(Decision::UpToDate) => true,
            Ok(Decision::Revalidate(_)) => record.shared == scan.shared_id,
            _ => record.run == recorder.run_id(),
        };
        let complete = known_of(found).filter(|batch| is_complete(batch));
        complete.is_some_and(|batch| batch.record.as_ref().is_some_and(is_of_run))
    };
    let failed = found
        .clone()
        .filter(|found| known_of(found).is_some_and(is_failed));
    let failed = failed.map(|found| found.batch.key.clone()).collect();
    let completed = match known.filter(|_| scan.others > 0) {
        Some(known) => {
            let undone = found.filter(|found| !is_done(found));
            let undone: BTreeSet<&str> = undone.map(|found| found.batch.key.as_str()).collect();
            let is_undone = |record: &BatchRecord| undone.contains(record.key.as_str());
            known.numbers(&|batch| {
                is_complete(batch) && !batch.record.as_ref().is_some_and(is_undone)
            })
        }
        None => found
            .filter(|found| is_done(found))
            .map(number_of)
            .collect(),
    };
    Progress {
        stage: stage.name.clone(),
        total_batches: scan.count(),
        completed_batches: progress::numbers(&completed),
        current_batch: running
            .iter()
            .filter_map(|&index| scan.batches.get(index))
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
fn number_of(found: &BatchScan) -> u64 {
    let named = found.batch.items.iter().find_map(|(_, item)| match item {
        milepost_core::plan::expand::BatchItem::File(file) => file.path.number(),
        milepost_core::plan::expand::BatchItem::Value(_) => None,
    });
    match (found.batch.items.len(), named) {
        (1, Some(number)) => number,
        _ => found.batch.position,
    }
}
