//! The history of a workspace by its journal: runs, a lane for each stage of a run, and bars in it.
//!
//! [`History::add`] takes one record after another, so a page can follow the journal. A million batches take about 40 MB.

mod lane;
mod open;
pub mod timeline;

use jiff::Timestamp;
use lane::{Lane, LanePart, Mark, NO_BAR};
use milepost_core::model::call::ANSWERED;
use milepost_core::model::event::{Event, Record};
use open::OpenBatches;
use serde::Serialize;
use std::collections::HashMap;

pub use lane::{BarResult, MarkKind, PartKind};

/// The history of a workspace.
#[derive(Debug, Default)]
pub struct History {
    runs: Vec<Run>,
    lanes: Vec<Lane>,
    /// The lane of a stage in the last run that has one.
    of_stage: HashMap<String, usize>,
    open: OpenBatches,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The id of the run.
    pub run: String,
    /// The command line; empty if the journal does not have it.
    pub command: String,
    /// The version of Milepost that ran.
    pub version: String,
    /// The time of its first record, in milliseconds since 1970.
    pub from: i64,
    /// The time of its last record.
    pub to: i64,
    /// How it ended, in the word of the journal; `None` if it runs, or was killed.
    pub status: Option<String>,
    /// The number of batches that ran in it.
    pub batches: u64,
    /// The number of batches that failed in it.
    pub failed: u64,
}

impl History {
    /// Returns the runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Adds a record. Records come in the order of the journal.
    #[expect(clippy::too_many_lines)]
    pub fn add(&mut self, record: &Record) {
        let at = record.timestamp.as_millisecond();
        let run = self.run(record, at);
        let Some(stage) = record.event.stage() else {
            self.of_run(record, run, at);
            return;
        };
        match &record.event {
            Event::StageStarted { number, .. } => {
                let lane = self.lane(run, stage);
                self.lanes[lane].number = *number;
                self.lanes[lane].act(&record.agent_name);
            }
            Event::Handoff { .. } | Event::StepHandoff { .. } => {
                self.mark(run, stage, at, MarkKind::Handoff, &record.summary);
            }
            Event::Accepted { .. } | Event::ChangeAccepted { .. } => {
                self.mark(run, stage, at, MarkKind::Accepted, &record.summary);
            }
            Event::Approved { .. } => {
                self.mark(run, stage, at, MarkKind::Approved, &record.summary);
            }
            Event::AttemptStarted { batch, attempt, .. } => {
                let lane = self.lane(run, stage);
                self.lanes[lane].act(&record.agent_name);
                if *attempt > 1 {
                    self.open.again(&mut self.lanes, lane, batch, at);
                } else {
                    self.open.start(&mut self.lanes, lane, batch, at);
                }
            }
            Event::StepStarted {
                batch, out, round, ..
            } => {
                let lane = self.lane(run, stage);
                let role = self.lanes[lane].act(&record.agent_name);
                let name = self.lanes[lane].name(&format!("{role}: {out}"));
                self.open
                    .step(&mut self.lanes, lane, batch, at, (name, *round));
            }
            Event::StepFinished { batch, .. } => {
                let lane = self.lane(run, stage);
                self.open.step_ended(&mut self.lanes, lane, batch, at);
            }
            Event::RoundJudged { batch, round, .. } => {
                let lane = self.lane(run, stage);
                let (number, is_right) = (round.round, round.right);
                self.open
                    .judged(&mut self.lanes, lane, batch, at, (number, is_right));
            }
            Event::RoundStarted { batch, round, .. } => {
                let lane = self.lane(run, stage);
                self.open.iterate(lane, batch, at, *round);
            }
            Event::Called {
                batch,
                agent,
                outcome,
                took_ms,
                ..
            } => {
                let lane = self.lane(run, stage);
                let name = self.lanes[lane].name(agent);
                let from = self.start(run, at, *took_ms);
                let bar = self.open.bar(lane, batch).unwrap_or(NO_BAR);
                let result = if outcome == ANSWERED {
                    BarResult::Built
                } else {
                    BarResult::Failed
                };
                self.lanes[lane].parts.push(LanePart::new(
                    PartKind::Call,
                    (from, at),
                    bar,
                    name,
                    result,
                ));
            }
            Event::Verdict { verdict, .. } => {
                let lane = self.lane(run, stage);
                let kind = if *verdict {
                    MarkKind::Positive
                } else {
                    MarkKind::Negative
                };
                self.lanes[lane].mark(Mark::new(at, kind), &record.summary);
            }
            Event::Published { record: built, .. } => {
                let lane = self.lane(run, stage);
                let result = if built.placeholder.is_some() || !built.failed.is_empty() {
                    BarResult::Failed
                } else {
                    BarResult::Built
                };
                // A batch without a start lasted as long as its record says.
                let from = self.start(run, at, built.duration_ms);
                self.open
                    .end(&mut self.lanes, (lane, &built.key), (from, at), result);
                self.runs[run].batches += 1;
                self.runs[run].failed += u64::from(result == BarResult::Failed);
            }
            Event::BatchFailed { batch, .. } => {
                let lane = self.lane(run, stage);
                self.open
                    .end(&mut self.lanes, (lane, batch), (at, at), BarResult::Failed);
                self.lanes[lane].mark(Mark::new(at, MarkKind::Failure), &record.summary);
                self.runs[run].batches += 1;
                self.runs[run].failed += 1;
            }
            Event::BatchCancelled { batch, .. } => {
                let lane = self.lane(run, stage);
                self.open.end(
                    &mut self.lanes,
                    (lane, batch),
                    (at, at),
                    BarResult::Cancelled,
                );
            }
            _ => {}
        }
    }

    /// Takes what concerns a run and no stage.
    fn of_run(&mut self, record: &Record, run: usize, at: i64) {
        match &record.event {
            Event::RunStarted { command, version } => {
                self.runs[run].command.clone_from(command);
                self.runs[run].version.clone_from(version);
            }
            Event::RunFinished { status, .. } => {
                self.runs[run].status = Some(status.clone());
                self.open.close(&mut self.lanes, at);
            }
            _ => {}
        }
    }

    /// Returns the run of a record. Batches that an earlier run left open ended with its last record.
    fn run(&mut self, record: &Record, at: i64) -> usize {
        match self.runs.last_mut() {
            Some(last) if last.run == record.run_id => last.to = last.to.max(at),
            last => {
                let end = last.map_or(at, |last| last.to);
                self.open.close(&mut self.lanes, end);
                self.of_stage.clear();
                self.runs.push(Run {
                    run: record.run_id.clone(),
                    from: at,
                    to: at,
                    ..Run::default()
                });
            }
        }
        self.runs.len() - 1
    }

    /// Returns the lane of a stage in the last run.
    fn lane(&mut self, run: usize, stage: &str) -> usize {
        if let Some(&lane) = self.of_stage.get(stage) {
            return lane;
        }
        self.lanes.push(Lane::new(run, stage));
        self.of_stage.insert(stage.to_owned(), self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    /// Returns when something of a run began that ended at a time and lasted this many milliseconds: not before the run.
    fn start(&self, run: usize, end: i64, lasted: u64) -> i64 {
        let lasted = i64::try_from(lasted).unwrap_or(i64::MAX);
        end.saturating_sub(lasted).max(self.runs[run].from).min(end)
    }

    fn mark(&mut self, run: usize, stage: &str, at: i64, kind: MarkKind, text: &str) {
        let lane = self.lane(run, stage);
        self.lanes[lane].mark(Mark::new(at, kind), text);
    }
}

/// Returns a time in milliseconds as a timestamp; of a time that none can hold, the nearest.
pub fn timestamp(milliseconds: i64) -> Timestamp {
    let nearest = if milliseconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_millisecond(milliseconds).unwrap_or(nearest)
}

#[cfg(test)]
mod tests;
