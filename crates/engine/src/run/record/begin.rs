//! The start of a stage: removes its checkpoint, and records its facts and the outputs that it takes over.

use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use crate::run::record::words::all_in_words;
use milepost_core::base::words;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::Phase;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::lineage;
use milepost_core::plan::scan::StageScan;
use std::collections::BTreeMap;

/// The most files and failures that the record of a hand-over names.
const LISTED: usize = 20;

/// Records that a stage starts, after removing its checkpoint. Checkpoints of later stages are removed when its outputs change.
///
/// # Errors
/// When the disk fails.
pub(crate) fn begin(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    found: &StageScan,
    will: u64,
) -> Result<(), RunError> {
    retire::remove_checkpoint(recorder, &stage.name, stage.number)?;
    recorder.flush()?;
    let batches = found.count();
    let event = Event::StageStarted {
        stage: stage.name.clone(),
        number: stage.number,
        shared: found.shared_id.clone(),
        facts: (*found.shared).clone(),
        batches,
        will,
    };
    let of = words::count(batches, "batch", "batches");
    let summary = format!("{} starts: {will} of {of}", stage.name);
    recorder.record(EventType::Invoke, stage.actor(), event, summary)
}

/// Records which outputs of other stages a stage takes over.
///
/// # Errors
/// When the journal cannot be written.
pub(crate) fn handoff(recorder: &mut Recorder<'_>, stage: &Stage) -> Result<(), RunError> {
    let from: Vec<String> = lineage::upstream(recorder.ctx.pipeline, stage)
        .iter()
        .map(|up| up.name.clone())
        .collect();
    if from.is_empty() {
        return Ok(());
    }
    let (mut files, mut elements) = (0, None);
    let (mut failed, mut refs) = (BTreeMap::new(), Vec::new());
    let mut summaries = BTreeMap::new();
    for up in &from {
        let Some(known) = recorder.state.stages.get(up) else {
            continue;
        };
        let totals = known.totals();
        files += totals.files;
        let listed = LISTED - refs.len();
        let paths = known.outputs().map(|(_, made)| made.path.to_string());
        refs.extend(paths.take(listed));
        for (key, batch) in &known.batches {
            let failure = match (&batch.phase, &batch.record) {
                (Phase::Failed { outcome }, _) => Some(outcome.to_string()),
                (_, Some(record)) => record.failure().map(|outcome| outcome.to_string()),
                _ => None,
            };
            if let Some(failure) = failure.filter(|_| failed.len() < LISTED) {
                failed.insert(batch_name(up, key), failure);
            }
        }
        if let Some(count) = totals.elements {
            *elements.get_or_insert(0) += count;
        }
        if let Some(summary) = totals.summary {
            summaries.insert(up.clone(), summary);
        }
    }
    let mut text = format!(
        "{} reads {} from {}",
        stage.name,
        words::count(files, "file", "files"),
        from.join(", ")
    );
    if !failed.is_empty() {
        text.push_str(&format!(", {} failed", failed.len()));
    }
    text.push_str(&all_in_words(&summaries));
    let event = Event::Handoff {
        stage: stage.name.clone(),
        from,
        files,
        elements,
        failed,
        summaries,
    };
    recorder.record_with(EventType::Handoff, stage.actor(), event, text, refs)
}
