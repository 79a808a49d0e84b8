//! Records what is accepted, and rewrites the checkpoint.

use super::choose::{record_of, scan};
use super::data::{AcceptOptions, Accepted, Adopted, Pinned};
use crate::ops::project::error::OpsError;
use crate::run::record::finish;
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use jiff::Timestamp;
use milepost_core::base::path::FilePath;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::fingerprint::{Change, Facts};
use milepost_core::model::reason::Reason;
use milepost_core::model::record::{Made, ModifiedFile, Pin};
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::StageScan;
use milepost_core::plan::schedule::only_failed;
use milepost_core::plan::world::World;
use milepost_store::store::{accepted, layout};
use std::collections::BTreeMap;

/// The person, the reason and the time.
pub(super) type By<'a> = (&'a str, &'a str, Timestamp);

/// Returns the pin that marks the outputs of a batch as accepted.
fn pin(recorder: &Recorder<'_>, stage: &Stage, key: &str, outputs: &[Made], by: By<'_>) -> Pin {
    let record = record_of(recorder, stage, key);
    let earlier = record.and_then(|record| record.pin.as_deref());
    let before = record.map_or(&[][..], |record| &record.outputs);
    Pin::new(by, earlier, before, outputs)
}

/// Copies the modified outputs of a batch to the accepted content.
pub(super) fn keep_content(
    recorder: &Recorder<'_>,
    stage: &Stage,
    key: &str,
    outputs: &[Made],
    by: By<'_>,
) -> Result<(), OpsError> {
    let pin = pin(recorder, stage, key, outputs, by);
    for made in outputs.iter().filter(|made| pin.covers(&made.path)) {
        accepted::keep(
            recorder.ctx.disk,
            recorder.ctx.layout,
            &made.path,
            made.digest,
        )?;
    }
    Ok(())
}

/// Records the accepted batches of a stage.
#[expect(clippy::too_many_arguments)]
pub(super) fn record(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    found: &StageScan,
    chosen: Vec<(String, Vec<Made>)>,
    by: By<'_>,
    options: &AcceptOptions,
    done: &mut Accepted,
) -> Result<(), OpsError> {
    if chosen.is_empty() {
        return Ok(());
    }
    // The checkpoint vouches for the old outputs.
    retire::remove_checkpoint(recorder, &stage.name, stage.number)?;
    recorder.flush()?;
    let mut facts: BTreeMap<String, Facts> = BTreeMap::new();
    for (key, outputs) in chosen {
        let name = batch_name(&stage.name, &key);
        let Some(batch) = found.batches.iter().find(|batch| batch.batch.key == key) else {
            continue;
        };
        if let Ok(Decision::Will(reasons)) = &batch.decision {
            let changes: Vec<Change> = reasons
                .iter()
                .filter_map(|reason| match reason {
                    Reason::Changed(change) => Some(change.clone()),
                    _ => None,
                })
                .collect();
            if !changes.is_empty() {
                facts.insert(key.clone(), (*batch.own).clone());
                done.adopted.push(Adopted {
                    stage: stage.name.clone(),
                    batch: key.clone(),
                    changes,
                });
            }
        }
        if !options.changes.is_empty() {
            continue;
        }
        done.pinned
            .extend(changed_outputs(recorder, stage, &key, &outputs));
        let pin = pin(recorder, stage, &key, &outputs, by);
        let refs = outputs.iter().map(|made| made.path.to_string()).collect();
        let summary = accepted_line(&name, &pin);
        let event = Event::Accepted {
            stage: stage.name.clone(),
            batch: key,
            outputs,
            pin,
        };
        recorder.record_with(EventType::Review, stage.actor(), event, summary, refs)?;
    }
    if facts.is_empty() {
        return Ok(recorder.flush()?);
    }
    let change = if options.changes.is_empty() {
        "what changed beside".to_owned()
    } else {
        options.changes.join(", ")
    };
    let (who, why, at) = by;
    let summary = format!("{} adopts {change} as accepted by {who}: {why}", stage.name);
    let event = Event::ChangeAccepted {
        stage: stage.name.clone(),
        change,
        shared: found.shared_id.clone(),
        facts: (*found.shared).clone(),
        batches: facts,
        pin: Pin {
            who: who.to_owned(),
            why: why.to_owned(),
            at: Some(at),
            files: Vec::new(),
        },
    };
    recorder.record(EventType::Review, stage.actor(), event, summary)?;
    Ok(recorder.flush()?)
}

/// Returns the summary for the journal: who accepted which files, with digests before and after.
fn accepted_line(name: &str, pin: &Pin) -> String {
    let of = |file: &ModifiedFile| {
        let (from, to) = (file.from.short(), file.to.short());
        format!("{} ({from}… → {to}…)", file.path)
    };
    let files: Vec<String> = pin.files.iter().map(of).collect();
    let files = match files.as_slice() {
        [] => "its outputs as they are".to_owned(),
        some => format!("{} as modified by hand", some.join(", ")),
    };
    format!("{name}: {} accepted {files}: {}", pin.who, pin.why)
}

/// Returns the outputs that differ from the record.
fn changed_outputs(
    recorder: &Recorder<'_>,
    stage: &Stage,
    key: &str,
    outputs: &[Made],
) -> Vec<Pinned> {
    let record = record_of(recorder, stage, key);
    let recorded = record.iter().flat_map(|record| &record.outputs);
    recorded
        .zip(outputs)
        .filter(|(old, new)| old.digest != new.digest)
        .map(|(old, new)| Pinned {
            stage: stage.name.clone(),
            batch: key.to_owned(),
            path: new.path.to_string(),
            old: old.digest,
            new: new.digest,
        })
        .collect()
}

/// Rewrites a stage's checkpoint from the records, if the stage is complete and its checkpoint is missing or modified.
pub(super) fn rewrite_checkpoint(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    done: &mut Accepted,
) -> Result<(), OpsError> {
    let path = layout::checkpoint(stage.number);
    let file = FilePath::workspace(path.clone());
    let there = recorder.ctx.digest(&file).map_err(OpsError::World)?;
    if there.is_some() && recorder.state.checkpoints.get(&stage.name).copied() == there {
        return Ok(());
    }
    let found = scan(recorder, stage, RebuildPolicy::Needed)?;
    let is_done = found.batches.iter().all(|batch| match &batch.decision {
        Ok(Decision::UpToDate) => true,
        Ok(Decision::Will(reasons)) => only_failed(reasons),
        _ => false,
    });
    let status =
        finish::status(recorder, stage, &found).filter(|_| is_done && found.gone.is_empty());
    match status {
        Some(status) => {
            finish::checkpoint(recorder, stage, &found, status)?;
            done.checkpoints.push(path.to_string());
        }
        // The stage is not complete, and the checkpoint is not recorded.
        None if there.is_some() => {
            retire::remove_checkpoint(recorder, &stage.name, stage.number)?;
        }
        None => {}
    }
    Ok(())
}
