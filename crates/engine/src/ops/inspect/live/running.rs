//! The batches that a run builds now, as its records tell.

use jiff::Timestamp;
use milepost_core::model::event::{Event, Record};
use serde::Serialize;
use std::collections::BTreeMap;

/// The running batches, by stage and key.
#[derive(Debug, Default)]
pub(super) struct Running(BTreeMap<(String, String), RunningBatch>);

/// A batch that a run builds now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningBatch {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// The start of its first attempt in this run.
    pub since: Timestamp,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The stage, or the role that works.
    pub agent: String,
    /// The output of the step that runs; `None` if the journal does not record steps of the stage.
    pub step: Option<String>,
    /// The iteration of `[refine]`, from 1.
    pub round: Option<u32>,
}

impl Running {
    /// Adds the next record.
    pub(super) fn add(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted { .. } | Event::RunFinished { .. } => self.0.clear(),
            Event::AttemptStarted {
                stage,
                batch,
                attempt,
            } => {
                let started = RunningBatch {
                    stage: stage.clone(),
                    batch: batch.clone(),
                    since: record.timestamp,
                    attempt: *attempt,
                    agent: record.agent_name.clone(),
                    step: None,
                    round: None,
                };
                let entry = self.0.entry((stage.clone(), batch.clone()));
                let known = entry.or_insert_with(|| started.clone());
                let since = known.since;
                *known = RunningBatch { since, ..started };
            }
            Event::StepStarted {
                stage,
                batch,
                out,
                round,
            } => {
                if let Some(known) = self.0.get_mut(&(stage.clone(), batch.clone())) {
                    known.agent.clone_from(&record.agent_name);
                    known.step = Some(out.clone());
                    known.round = *round;
                }
            }
            Event::BatchFailed { stage, batch, .. }
            | Event::BatchCancelled { stage, batch }
            | Event::Lost { stage, batch, .. } => self.end(stage, batch),
            Event::Published { stage, record, .. } => self.end(stage, &record.key),
            _ => {}
        }
    }

    /// Returns the batches, those that run longest first.
    pub(super) fn list(&self) -> Vec<RunningBatch> {
        let mut list: Vec<RunningBatch> = self.0.values().cloned().collect();
        list.sort_by_key(|one| one.since);
        list
    }

    fn end(&mut self, stage: &str, batch: &str) {
        self.0.remove(&(stage.to_owned(), batch.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::model::event::EventType;
    use milepost_core::model::record::BatchRecord;

    fn at(second: i64, agent: &str, event: Event) -> Record {
        Record {
            timestamp: Timestamp::from_second(second).unwrap(),
            session_id: String::new(),
            run_id: "RUN".to_owned(),
            agent_name: agent.to_owned(),
            event_type: EventType::Invoke,
            event,
            summary: String::new(),
            artifact_refs: Vec::new(),
            prev: None,
        }
    }

    fn attempt(batch: &str, attempt: u32) -> Event {
        Event::AttemptStarted {
            stage: "draw".to_owned(),
            batch: batch.to_owned(),
            attempt,
        }
    }

    #[test]
    fn a_batch_runs_from_its_first_attempt_until_its_end() {
        let step = Event::StepStarted {
            stage: "draw".to_owned(),
            batch: "b".to_owned(),
            out: "svg".to_owned(),
            round: Some(2),
        };
        let published = Event::Published {
            stage: "draw".to_owned(),
            record: Box::new(BatchRecord {
                key: "a".to_owned(),
                ..BatchRecord::default()
            }),
            files: Vec::new(),
            retired: BTreeMap::new(),
        };
        let started = || Event::RunStarted {
            command: "milepost run".to_owned(),
            version: "1".to_owned(),
        };
        let mut running = Running::default();
        for record in [
            at(1, "planner", started()),
            at(2, "draw", attempt("killed", 1)),
            at(3, "planner", started()),
            at(4, "draw", attempt("b", 1)),
            at(5, "draw", attempt("a", 1)),
            at(6, "draw", attempt("b", 2)),
            at(7, "reviewer", step),
        ] {
            running.add(&record);
        }
        let of = |batch: &str, since, attempt| RunningBatch {
            stage: "draw".to_owned(),
            batch: batch.to_owned(),
            since: Timestamp::from_second(since).unwrap(),
            attempt,
            agent: "draw".to_owned(),
            step: None,
            round: None,
        };
        let b = RunningBatch {
            agent: "reviewer".to_owned(),
            step: Some("svg".to_owned()),
            round: Some(2),
            ..of("b", 4, 2)
        };
        assert_eq!(running.list(), [b.clone(), of("a", 5, 1)]);
        running.add(&at(8, "draw", published));
        assert_eq!(running.list(), [b]);
    }
}
