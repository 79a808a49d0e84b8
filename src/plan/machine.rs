//! The state machine: `apply` is the only thing that changes what is known of a workspace, live and in recovery alike.

use crate::model::event::Event;
use crate::model::fingerprint::Facts;
use crate::model::state::{BatchState, Phase, StageState, State, Unsettled};
use std::sync::Arc;

/// An event that cannot follow what is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` cannot follow: {stage}{sep}{batch} is {phase}", sep = if batch.is_empty() { "" } else { "/" })]
pub struct IllegalTransition {
    /// The kind of the event.
    pub event: &'static str,
    /// The stage that it is about.
    pub stage: String,
    /// The batch that it is about.
    pub batch: String,
    /// Where that is.
    pub phase: String,
}

/// Takes one event into the state.
///
/// # Errors
/// When the event cannot follow; the state is then as it was.
pub fn apply(state: &mut State, run_id: &str, event: &Event) -> Result<(), IllegalTransition> {
    match event {
        Event::RunStarted { .. } => {
            for batch in state
                .stages
                .values_mut()
                .flat_map(|stage| stage.batches.values_mut())
            {
                if matches!(batch.phase, Phase::Running { .. } | Phase::Backoff { .. }) {
                    batch.phase = rest(batch);
                }
            }
            state.children.clear();
            state.open_run = Some(run_id.to_owned());
        }
        Event::RunFinished { .. } => {
            state.children.clear();
            state.open_run = None;
        }
        Event::Sealed { checkpoints, .. } => state.checkpoints.clone_from(checkpoints),
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
        }
        Event::Handoff { .. } => {}
        Event::AttemptStarted {
            stage,
            batch,
            attempt,
        } => {
            let entry = known(state, "attempt_started", stage, batch)?;
            let follows = match entry.phase {
                Phase::Running { .. } => false,
                Phase::Backoff { attempt: before } => *attempt == before + 1,
                _ => *attempt == 1,
            };
            if !follows {
                return Err(illegal("attempt_started", stage, batch, entry));
            }
            entry.phase = Phase::Running { attempt: *attempt };
        }
        Event::ChildStarted(child) => {
            let entry = known(state, "child_started", &child.stage, &child.batch)?;
            if !matches!(entry.phase, Phase::Running { .. }) {
                return Err(illegal("child_started", &child.stage, &child.batch, entry));
            }
            state.children.push(child.clone());
        }
        Event::AttemptFailed {
            stage,
            batch,
            attempt,
            ..
        } => {
            let entry = running(state, "attempt_failed", stage, batch)?;
            entry.phase = Phase::Backoff { attempt: *attempt };
            end_children(state, stage, batch);
        }
        Event::BatchFailed {
            stage,
            batch,
            outcome,
            ..
        } => {
            let entry = known(state, "batch_failed", stage, batch)?;
            if matches!(entry.phase, Phase::Complete) && entry.record.is_none() {
                return Err(illegal("batch_failed", stage, batch, entry));
            }
            entry.phase = Phase::Failed {
                outcome: outcome.clone(),
            };
            end_children(state, stage, batch);
        }
        Event::BatchCancelled { stage, batch } => {
            let entry = known(state, "batch_cancelled", stage, batch)?;
            if !matches!(entry.phase, Phase::Running { .. } | Phase::Backoff { .. }) {
                return Err(illegal("batch_cancelled", stage, batch, entry));
            }
            entry.phase = rest(entry);
            end_children(state, stage, batch);
        }
        Event::Published {
            stage,
            record,
            files,
        } => {
            let entry = running(state, "published", stage, &record.key)?;
            entry.phase = Phase::Complete;
            // What it made before at other paths is nobody's, and waits to be cleared away.
            let before = entry.record.replace((**record).clone());
            let made = before.into_iter().flat_map(|record| record.outputs);
            entry
                .remains
                .extend(made.map(|made| (made.path, made.digest)));
            for made in &record.outputs {
                entry.remains.remove(&made.path);
            }
            end_children(state, stage, &record.key);
            state.unsettled.push(Unsettled {
                stage: stage.clone(),
                batch: record.key.clone(),
                files: files.clone(),
            });
        }
        Event::Barrier => state.unsettled.clear(),
        Event::Lost {
            stage,
            batch,
            remains,
        } => {
            let entry = known(state, "lost", stage, batch)?;
            if entry.record.is_none() {
                return Err(illegal("lost", stage, batch, entry));
            }
            entry.record = None;
            entry.phase = Phase::Waiting;
            entry.remains.clone_from(remains);
        }
        Event::Retired { stage, batch, .. } => {
            if let Some(stage) = state.stages.get_mut(stage) {
                let failed = stage.batches.get(batch).map(|batch| batch.phase.clone());
                stage.batches.remove(batch);
                // A failed batch is live: only what it made before is gone.
                if let Some(phase @ Phase::Failed { .. }) = failed {
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
        Event::Cleared { stage, batch, .. } => {
            known(state, "cleared", stage, batch)?.remains.clear();
        }
        Event::Judged {
            stage,
            shared,
            facts,
            batches,
        } => {
            let stage = state.stages.entry(stage.clone()).or_default();
            remember(stage, shared, facts);
            for batch in batches {
                if let Some(record) = stage
                    .batches
                    .get_mut(batch)
                    .and_then(|batch| batch.record.as_mut())
                {
                    record.shared.clone_from(shared);
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
                record.pin = Some(pin.clone());
            }
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
                if let Some(record) = stage
                    .batches
                    .get_mut(batch)
                    .and_then(|batch| batch.record.as_mut())
                {
                    record.shared.clone_from(shared);
                    record.facts.clone_from(own);
                }
            }
        }
        Event::CheckpointWritten {
            stage,
            number,
            status,
            digest,
        } => {
            state.checkpoints.insert(stage.clone(), *digest);
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
        }
    }
    Ok(())
}

fn remember(stage: &mut StageState, shared: &str, facts: &Facts) {
    stage
        .facts
        .entry(shared.to_owned())
        .or_insert_with(|| Arc::new(facts.clone()));
}

/// Where a batch is when nothing runs.
fn rest(batch: &BatchState) -> Phase {
    if batch.record.is_some() {
        Phase::Complete
    } else {
        Phase::Waiting
    }
}

fn known<'a>(
    state: &'a mut State,
    event: &'static str,
    stage: &str,
    batch: &str,
) -> Result<&'a mut BatchState, IllegalTransition> {
    let found = state
        .stages
        .get_mut(stage)
        .ok_or_else(|| IllegalTransition {
            event,
            stage: stage.to_owned(),
            batch: batch.to_owned(),
            phase: "not started".to_owned(),
        })?;
    Ok(found.batches.entry(batch.to_owned()).or_default())
}

fn running<'a>(
    state: &'a mut State,
    event: &'static str,
    stage: &str,
    batch: &str,
) -> Result<&'a mut BatchState, IllegalTransition> {
    let entry = known(state, event, stage, batch)?;
    if matches!(entry.phase, Phase::Running { .. }) {
        Ok(entry)
    } else {
        Err(illegal(event, stage, batch, entry))
    }
}

fn illegal(event: &'static str, stage: &str, batch: &str, entry: &BatchState) -> IllegalTransition {
    IllegalTransition {
        event,
        stage: stage.to_owned(),
        batch: batch.to_owned(),
        phase: entry.phase.word().to_owned(),
    }
}

fn end_children(state: &mut State, stage: &str, batch: &str) {
    state
        .children
        .retain(|child| child.stage != stage || child.batch != batch);
}
