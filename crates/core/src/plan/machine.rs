//! The state machine: only `apply` changes the state of a workspace, live and in recovery.

use crate::model::approval::{Approval, ApprovedStage};
use crate::model::checkpoint::Status;
use crate::model::event::Event;
use crate::model::fingerprint::Facts;
use crate::model::forced::Forced;
use crate::model::state::{BatchState, Phase, StageState, State, Unsettled};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An event that is not allowed in the current state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` cannot follow: {stage}{sep}{batch} is {phase}", sep = if batch.is_empty() { "" } else { "/" })]
pub struct IllegalTransition {
    /// The kind of the event.
    pub(crate) event: String,
    /// The stage that it is about.
    pub(crate) stage: String,
    /// The batch that it is about.
    pub(crate) batch: String,
    /// Where that is.
    pub(crate) phase: String,
}

/// Applies an event to the state.
///
/// # Errors
/// If the event is not allowed. The state is unchanged then.
#[expect(clippy::too_many_lines)]
pub fn apply(state: &mut State, run_id: &str, event: &Event) -> Result<(), IllegalTransition> {
    match event {
        Event::RunStarted { .. } => {
            let stages = state.stages.values_mut();
            let batches = stages.flat_map(|stage| stage.batches.values_mut());
            let tried = batches.filter(|batch| batch.is_tried());
            tried.for_each(BatchState::rest);
            state.children.clear();
            state.open_run = Some(run_id.to_owned());
            for forced in &mut state.forced {
                if !forced.runs.is_empty() && !forced.runs.iter().any(|known| known == run_id) {
                    forced.runs.push(run_id.to_owned());
                }
            }
        }
        Event::RunFinished { status, .. } => {
            state.children.clear();
            state.open_run = None;
            for forced in &mut state.forced {
                if forced.run == run_id {
                    forced.ended = status != "interrupted";
                    if status == "complete" {
                        forced.open.clear();
                    }
                }
            }
            state.forced.retain(|forced| !forced.is_empty());
        }
        Event::Sealed {
            checkpoints,
            forced,
            approvals,
            ..
        } => {
            state.checkpoints.clone_from(checkpoints);
            state.forced.clone_from(forced);
            state.approvals.clone_from(approvals);
        }
        Event::Forced {
            stage,
            batches,
            fresh,
            open,
        } => force(state, run_id, stage, batches, (*fresh, *open)),
        Event::ForceDropped { stage, batches } => {
            release(state, stage, batches);
            if batches.is_empty() {
                release_all(state, stage);
                close(state, stage);
            }
        }
        Event::StageStarted {
            stage,
            number,
            shared,
            facts,
            ..
        } => {
            let stage = state.stages.entry(stage.clone()).or_default();
            stage.number = *number;
            remember(stage, shared, facts);
            // The run began in an earlier segment of the journal, perhaps: this one says which it is.
            state.open_run = Some(run_id.to_owned());
        }
        Event::Handoff { .. } | Event::CorrectionsImported { .. } | Event::JobsSubmitted { .. } => {
        }
        Event::AttemptStarted {
            stage,
            batch,
            attempt,
        } => {
            let follows = |entry: &BatchState| match entry.phase {
                Phase::Running { .. } => false,
                Phase::Backoff { attempt: before } => *attempt == before + 1,
                _ => *attempt == 1,
            };
            let entry = legal(state, event, stage, batch, follows)?;
            entry.failure = entry.last_failure().cloned().map(Box::new);
            entry.phase = Phase::Running { attempt: *attempt };
            state.open_run = Some(run_id.to_owned());
        }
        Event::ChildStarted(child) => {
            legal(state, event, &child.stage, &child.batch, is_running)?;
            state.children.push(child.clone());
        }
        Event::StepStarted { stage, batch, .. }
        | Event::StepFinished { stage, batch, .. }
        | Event::StepHandoff { stage, batch, .. }
        | Event::RoundJudged { stage, batch, .. }
        | Event::RoundStarted { stage, batch, .. }
        | Event::ElementsFailed { stage, batch, .. }
        | Event::Verdict { stage, batch, .. } => {
            legal(state, event, stage, batch, is_running)?;
        }
        // Someone outside answers while nothing runs.
        Event::Called { stage, batch, .. } | Event::AnswersRefused { stage, batch, .. } => {
            begun(state, event, stage, batch)?;
        }
        Event::ServiceStarted { child, .. } => {
            state.children.retain(|known| known.token != child.token);
            state.children.push(child.clone());
            state.open_run = Some(run_id.to_owned());
        }
        Event::ServiceEnded { token, .. } => {
            state.children.retain(|known| known.token != *token);
        }
        Event::AttemptFailed {
            stage,
            batch,
            attempt,
            ..
        } => {
            let running = Phase::Running { attempt: *attempt };
            let is_this = |entry: &BatchState| entry.phase == running;
            let entry = legal(state, event, stage, batch, is_this)?;
            entry.phase = Phase::Backoff { attempt: *attempt };
            end_children(state, stage, batch);
        }
        Event::BatchFailed {
            stage,
            batch,
            outcome,
            ..
        } => {
            // One that never began can fail, too: for want of an input.
            let entry = legal(state, event, stage, batch, |_| true)?;
            entry.failure = None;
            entry.phase = Phase::Failed {
                outcome: Box::new(outcome.clone()),
            };
            end_children(state, stage, batch);
            // The request was sent, as the forced run wanted.
            if outcome.accepted.is_some() {
                release(state, stage, [batch]);
            }
        }
        Event::BatchCancelled { stage, batch } => {
            let entry = legal(state, event, stage, batch, BatchState::is_tried)?;
            entry.rest();
            end_children(state, stage, batch);
        }
        Event::Published {
            stage,
            record,
            files,
            retired,
        } => {
            // A batch whose outputs are restored from quarantine does not run.
            let follows = |entry: &BatchState| !matches!(entry.phase, Phase::Backoff { .. });
            let entry = legal(state, event, stage, &record.key, follows)?;
            entry.phase = Phase::Complete;
            entry.failure = None;
            entry.record = Some((**record).clone());
            entry.remains.clear();
            end_children(state, stage, &record.key);
            state.unsettled.push(Unsettled {
                stage: stage.clone(),
                batch: record.key.clone(),
                files: files.clone(),
            });
            state.retiring.extend(retired.clone());
            // A batch that failed in part is not rebuilt: the next run tries it again, unless it sent its request.
            let failure = record.failure();
            if failure.is_none_or(|outcome| outcome.accepted.is_some()) {
                release(state, stage, [&record.key]);
            }
        }
        Event::Barrier => {
            state.unsettled.clear();
            state.retiring.clear();
        }
        Event::Lost {
            stage,
            batch,
            remains,
        } => {
            let is_made = |entry: &BatchState| entry.record.is_some();
            legal(state, event, stage, batch, is_made)?;
            carry_approval(state, stage, batch, false);
            let entry = legal(state, event, stage, batch, is_made)?;
            entry.record = None;
            entry.phase = Phase::Waiting;
            entry.remains.clone_from(remains);
        }
        Event::Retired {
            stage,
            batch,
            files,
            gone,
        } => {
            state.retiring.extend(files.clone());
            if *gone {
                release(state, stage, [batch]);
            }
            carry_approval(state, stage, batch, *gone);
            if let Some(stage) = state.stages.get_mut(stage) {
                let before = stage.batches.remove(batch).map(|batch| batch.phase);
                // A failed batch that the stage still has stays failed: only its earlier outputs are retired.
                if let Some(phase @ Phase::Failed { .. }) = before.filter(|_| !gone) {
                    stage.batches.insert(
                        batch.clone(),
                        BatchState {
                            phase,
                            ..BatchState::default()
                        },
                    );
                }
            }
        }
        Event::Judged {
            stage,
            shared,
            facts,
            batches,
            opinions,
        } => {
            let stage = state.stages.entry(stage.clone()).or_default();
            remember(stage, shared, facts);
            for key in batches {
                let batch = stage.batches.get_mut(key);
                if let Some(record) = batch.and_then(|batch| batch.record.as_mut()) {
                    record.shared.clone_from(shared);
                    if let Some(opinion) = opinions.get(key) {
                        record.summary.clone_from(&opinion.summary);
                        record.said.clone_from(&opinion.said);
                        record.verdict = opinion.verdict;
                    }
                }
            }
        }
        Event::Accepted {
            stage,
            batch,
            outputs,
            pin,
        } => {
            // A crash while manifests are written has this event applied to what came after it: the batch may be gone.
            let entry = state.stages.get_mut(stage);
            let entry = entry.and_then(|stage| stage.batches.get_mut(batch));
            if let Some(record) = entry.and_then(|entry| entry.record.as_mut()) {
                record.outputs.clone_from(outputs);
                record.pin = (!pin.is_void()).then(|| Box::new(pin.clone()));
            }
            // To keep an output as it is takes `--force` back.
            release(state, stage, [batch]);
        }
        Event::ChangeAccepted {
            stage,
            shared,
            facts,
            batches,
            ..
        } => {
            let stage = state.stages.entry(stage.clone()).or_default();
            remember(stage, shared, facts);
            for (batch, own) in batches {
                let batch = stage.batches.get_mut(batch);
                if let Some(record) = batch.and_then(|batch| batch.record.as_mut()) {
                    record.shared.clone_from(shared);
                    record.facts.clone_from(own);
                }
            }
        }
        Event::Approved {
            stage,
            by,
            facts,
            batches,
            pin,
        } => {
            let approval = Approval::of(by, pin, batches, *facts);
            let earlier = state.approvals.remove(stage);
            let mut open = earlier.map(|earlier| earlier.open).unwrap_or_default();
            open.extend(batches.clone());
            let approved = ApprovedStage { approval, open };
            state.approvals.insert(stage.clone(), approved);
        }
        Event::CheckpointWritten {
            stage,
            number,
            status,
            digest,
        } => {
            state.checkpoints.insert(stage.clone(), *digest);
            close(state, stage);
            if *status == Status::Complete
                && let Some(approved) = state.approvals.get_mut(stage)
            {
                // Every batch is recorded with its facts, and needs no approval as long as they are the same.
                approved.open.clear();
            }
            let stage = state.stages.entry(stage.clone()).or_default();
            stage.status = Some(*status);
            stage.number = *number;
        }
        Event::CheckpointRemoved { stage, .. } => {
            state.checkpoints.remove(stage);
            if let Some(stage) = state.stages.get_mut(stage) {
                stage.status = None;
            }
        }
        Event::StageForgotten { stage } => {
            state.stages.remove(stage);
            state.checkpoints.remove(stage);
            state.approvals.remove(stage);
            release_all(state, stage);
            close(state, stage);
        }
    }
    Ok(())
}

/// Notes that a run with `--force` selected batches of a stage. It takes them over from earlier runs.
fn force(
    state: &mut State,
    run: &str,
    stage: &str,
    batches: &BTreeSet<String>,
    (fresh, open): (bool, bool),
) {
    release(state, stage, batches);
    let at = state.forced.iter().position(|forced| forced.run == run);
    let at = at.unwrap_or_else(|| {
        state.forced.push(Forced {
            run: run.to_owned(),
            runs: fresh.then(|| run.to_owned()).into_iter().collect(),
            ..Forced::default()
        });
        state.forced.len() - 1
    });
    if let Some(forced) = state.forced.get_mut(at) {
        if !batches.is_empty() {
            let of_stage = forced.batches.entry(stage.to_owned()).or_default();
            of_stage.extend(batches.iter().cloned());
        }
        if open {
            forced.open.insert(stage.to_owned());
        }
    }
    state.forced.retain(|forced| !forced.is_empty());
}

/// Keeps the approval of a batch whose record is removed because it failed or was lost; forgets that of a batch that the stage no
/// longer has.
fn carry_approval(state: &mut State, stage: &str, batch: &str, gone: bool) {
    let Some(approved) = state.approvals.get_mut(stage) else {
        return;
    };
    if gone {
        approved.open.remove(batch);
        return;
    }
    let known = state.stages.get(stage);
    let record = known.and_then(|known| known.batches.get(batch)?.record.as_ref());
    if let Some((known, record)) = known.zip(record) {
        let facts = || known.facts_id(record);
        approved.open.entry(batch.to_owned()).or_insert_with(facts);
    }
}

/// Notes that batches of a stage are no longer forced.
fn release<'a>(state: &mut State, stage: &str, batches: impl IntoIterator<Item = &'a String>) {
    if state.forced.is_empty() {
        return;
    }
    for batch in batches {
        for forced in &mut state.forced {
            forced.remove(stage, batch);
        }
    }
    state.forced.retain(|forced| !forced.is_empty());
}

/// Notes that no batch of a stage is forced any more.
fn release_all(state: &mut State, stage: &str) {
    for forced in &mut state.forced {
        forced.batches.remove(stage);
    }
    state.forced.retain(|forced| !forced.is_empty());
}

/// Notes that new batches of a stage may use every answer that is kept.
fn close(state: &mut State, stage: &str) {
    for forced in &mut state.forced {
        forced.open.remove(stage);
    }
    state.forced.retain(|forced| !forced.is_empty());
}

fn remember(stage: &mut StageState, shared: &str, facts: &Facts) {
    let known = stage.facts.entry(shared.to_owned());
    known.or_insert_with(|| Arc::new(facts.clone()));
}

fn is_running(batch: &BatchState) -> bool {
    matches!(batch.phase, Phase::Running { .. })
}

/// Returns the batch that an event is about, if the event can follow; else the state stays as it is.
fn legal<'a>(
    state: &'a mut State,
    event: &Event,
    stage: &str,
    batch: &str,
    can_follow: impl FnOnce(&BatchState) -> bool,
) -> Result<&'a mut BatchState, IllegalTransition> {
    let illegal = |phase: &str| illegal(event, stage, batch, phase);
    let found = state
        .stages
        .get_mut(stage)
        .ok_or_else(|| illegal("not started"))?;
    let fresh = BatchState::default();
    let known = found.batches.get(batch).unwrap_or(&fresh);
    if !can_follow(known) {
        return Err(illegal(known.phase.word()));
    }
    Ok(found.batches.entry(batch.to_owned()).or_default())
}

/// Refuses events of a batch before its stage began. The batch itself need not be known, and stays as it is.
fn begun(state: &State, event: &Event, stage: &str, batch: &str) -> Result<(), IllegalTransition> {
    if state.stages.contains_key(stage) {
        return Ok(());
    }
    Err(illegal(event, stage, batch, "not started"))
}

fn illegal(event: &Event, stage: &str, batch: &str, phase: &str) -> IllegalTransition {
    let event = serde_json::to_value(event).unwrap_or_default();
    IllegalTransition {
        event: event["kind"].as_str().unwrap_or_default().to_owned(),
        stage: stage.to_owned(),
        batch: batch.to_owned(),
        phase: phase.to_owned(),
    }
}

fn end_children(state: &mut State, stage: &str, batch: &str) {
    state
        .children
        .retain(|child| child.stage != stage || child.batch != batch);
}
