//! Explains a stage or a batch: the decision and the facts it is based on.

use super::explanation::{
    BatchVerdict, BatchWhy, FileState, InputFile, MadeBy, OutputFile, StageWhy, Verdict, Why,
};
use super::makers::Makers;
use crate::ops::inspect::calls::batch_calls;
use crate::ops::plan::ModifiedOutput;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::programs::located;
use jiff::Timestamp;
use milepost_core::base::path::FilePath;
use milepost_core::model::event::Event;
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::facts::programs;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::schedule::BatchSchedule;
use milepost_core::plan::world::World;
use milepost_store::store::journal;
use serde_json::Value;
use std::collections::BTreeMap;

/// Explains what happens to the batches of a stage.
pub(super) fn stage_why(stage: &Stage, found: &StageScan, batches: &BatchSchedule) -> StageWhy {
    let mut why = StageWhy {
        batches: found.batches.len() as u64,
        gone: found.gone.clone(),
        ..StageWhy::of(stage)
    };
    for (place, batch) in found.batches.iter().enumerate() {
        match verdict(stage, batch, batches, place) {
            Verdict::UpToDate => why.reused += 1,
            verdict => why.others.push(BatchVerdict {
                batch: batch.batch.key.clone(),
                verdict,
            }),
        }
    }
    why
}

/// Returns what happens to a batch at this place.
fn verdict(stage: &Stage, found: &BatchScan, batches: &BatchSchedule, place: usize) -> Verdict {
    let agent = batches.waiting.get(&place).cloned();
    let role = stage.approve.clone();
    let role = role.filter(|_| batches.unapproved.contains(&place));
    match found.decision.clone() {
        Ok(Decision::Will(reasons)) => match (role, agent) {
            (Some(by), _) => Verdict::Unapproved { by, reasons },
            (None, Some(agent)) => Verdict::Waits { agent, reasons },
            (None, None) => Verdict::Will { reasons },
        },
        Ok(Decision::UpToDate) => Verdict::UpToDate,
        Ok(Decision::Restore(_)) => Verdict::Restore,
        Ok(Decision::Revalidate(changes)) => Verdict::Revalidate { changes },
        Ok(Decision::May(conditions)) => Verdict::May { conditions },
        Ok(Decision::Modified(files)) => Verdict::Modified {
            files: files
                .into_iter()
                .map(|file| ModifiedOutput::of((found.batch.key.clone(), file)))
                .collect(),
        },
        Err(missed) => Verdict::Impossible {
            why: missed.to_string(),
        },
    }
}

/// Explains a batch, by its place in the scan.
pub(super) fn batch_why(
    opened: &OpenProject,
    state: &State,
    stage: &Stage,
    (found, batches): (&StageScan, &BatchSchedule),
    place: usize,
) -> Result<Why, OpsError> {
    let batch = &found.batches[place];
    let verdict = verdict(stage, batch, batches, place);
    let facts = (&*found.shared, &*batch.own);
    explain(opened, state, stage, &batch.batch.key, verdict, facts)
}

/// Explains a batch by its record and its present facts: those that it shares with others, and its own.
pub(super) fn explain(
    opened: &OpenProject,
    state: &State,
    stage: &Stage,
    key: &str,
    verdict: Verdict,
    (shared, own): (&Facts, &Facts),
) -> Result<Why, OpsError> {
    let known = state.stages.get(&stage.name);
    let record = known.and_then(|known| known.batches.get(key)?.record.as_ref());
    let of_kind = |judged: bool| -> BTreeMap<String, String> {
        let facts = shared.iter().chain(own.iter());
        let is_told = |kind: FactKind| {
            kind.only_validates() == judged && !matches!(kind, FactKind::Input | FactKind::Detail)
        };
        facts
            .filter(|(key, _)| is_told(key.kind))
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    };
    let mut made_from = of_kind(false);
    for program in programs(stage, &opened.pipeline, &opened.settings) {
        let place = located(opened, &program.name, program.path);
        if let Some((value, place)) = made_from
            .get_mut(&format!("program {}", program.name))
            .zip(place)
            && !value.contains('/')
        {
            value.push_str(&format!(" {}", place.display()));
        }
    }
    let (when, quarantine) = journalled(opened, &stage.name, key)?;
    let made = record.map(|record| made_by(when, record));
    Ok(Why::Batch(Box::new(BatchWhy {
        stage: stage.name.clone(),
        batch: key.to_owned(),
        verdict,
        made,
        failed: record.map_or_else(Vec::new, |record| record.failed.clone()),
        quarantine,
        asked: batch_calls(opened, &stage.name, key, record)?,
        inputs: inputs(state, record.map(|record| &record.facts), own),
        outputs: outputs(opened, record),
        made_from,
        judged_by: of_kind(true),
    })))
}

fn made_by(when: Option<Timestamp>, record: &BatchRecord) -> MadeBy {
    MadeBy {
        run: record.run.clone(),
        when,
        attempts: record.attempts,
        seconds: record.duration_ms as f64 / 1000.0,
        elements: record.elements,
        summary: record.summary.as_deref().cloned(),
        placeholder: record.placeholder.as_deref().cloned(),
        pin: record.pin.as_deref().cloned(),
        job: record.job.as_deref().cloned(),
    }
}

/// Returns when a batch was last published, and where the partial output of its last failure is since then, both from the journal. Only
/// lines that name the batch are read; `verify` checks the chain.
pub(crate) fn journalled(
    opened: &OpenProject,
    stage: &str,
    batch: &str,
) -> Result<(Option<Timestamp>, Option<String>), OpsError> {
    let (mut when, mut kept) = (None, None);
    journal::read_with(
        &opened.workspace.layout,
        &naming(stage, batch),
        &mut |record| {
            if record.event.stage() != Some(stage) || !record.event.is_about(batch) {
                return;
            }
            match record.event {
                Event::Published { record: made, .. } => {
                    when = Some(record.timestamp);
                    if made.failure().is_none() {
                        kept = None;
                    }
                }
                Event::BatchFailed { quarantine, .. }
                | Event::ElementsFailed { quarantine, .. } => {
                    kept = quarantine;
                }
                _ => {}
            }
        },
    )?;
    Ok((when, kept))
}

/// Returns the texts one of which occurs in the line of each record about a batch.
pub(crate) fn naming(stage: &str, batch: &str) -> [String; 1] {
    // The only batch of a stage has no name.
    let name = if batch.is_empty() { stage } else { batch };
    [Value::from(name).to_string()]
}

fn inputs(state: &State, recorded: Option<&Facts>, present: &Facts) -> Vec<InputFile> {
    let of = |facts: &Facts| -> BTreeMap<String, String> {
        let inputs = facts.iter().filter(|(key, _)| key.kind == FactKind::Input);
        inputs
            .map(|(key, value)| (key.name.to_string(), value.to_string()))
            .collect()
    };
    let makers = Makers::of(state);
    let recorded = recorded.map(of).unwrap_or_default();
    let present = of(present);
    let mut paths: Vec<&String> = recorded.keys().chain(present.keys()).collect();
    paths.sort_by(|a, b| milepost_core::base::natural::natural(a, b));
    paths.dedup();
    paths
        .into_iter()
        .map(|path| InputFile {
            path: path.clone(),
            recorded: recorded.get(path).cloned(),
            present: present.get(path).cloned(),
            made_by: makers.name(path),
        })
        .collect()
}

fn outputs(opened: &OpenProject, record: Option<&BatchRecord>) -> Vec<OutputFile> {
    let Some(record) = record else {
        return Vec::new();
    };
    let made = record.outputs.iter();
    made.map(|made| {
        let file = FilePath::workspace(made.path.clone());
        let state = match opened.context().digest(&file) {
            Ok(there) => FileState::of(there, made, record),
            // The decision says why it cannot be read.
            Err(_) => FileState::Modified,
        };
        OutputFile {
            name: made.name.clone(),
            path: made.path.to_string(),
            digest: made.digest,
            size: made.size,
            state,
        }
    })
    .collect()
}
