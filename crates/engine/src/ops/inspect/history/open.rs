//! The batches that run at the place of the journal that was read last: only they can still change.

use super::lane::{BarResult, Lane, LanePart, PartKind, length};
use std::collections::HashMap;

/// The running batches, by lane and key.
#[derive(Debug, Default)]
pub(super) struct OpenBatches(HashMap<(usize, String), OpenBatch>);

#[derive(Debug)]
struct OpenBatch {
    bar: u32,
    /// The running step, by its place among the parts of the lane.
    step: Option<usize>,
    /// When the running iteration began, and its number.
    iteration: (i64, u32),
}

impl OpenBatches {
    /// Returns the bar of a running batch.
    pub(super) fn bar(&self, lane: usize, batch: &str) -> Option<u32> {
        self.0.get(&(lane, batch.to_owned())).map(|open| open.bar)
    }

    /// Starts a batch that does not run yet, or another attempt at it. Returns its bar.
    pub(super) fn start(&mut self, lanes: &mut [Lane], lane: usize, batch: &str, at: i64) -> u32 {
        let entry = self.0.entry((lane, batch.to_owned()));
        let open = entry.or_insert_with(|| OpenBatch {
            bar: lanes[lane].push(batch, at),
            step: None,
            iteration: (at, 1),
        });
        open.bar
    }

    /// Notes another attempt at a batch.
    pub(super) fn again(&mut self, lanes: &mut [Lane], lane: usize, batch: &str, at: i64) {
        let key = (lane, batch.to_owned());
        match self.0.get_mut(&key) {
            Some(open) => {
                open.iteration = (at, 1);
                let bar = &mut lanes[lane].bars[open.bar as usize];
                bar.attempts = bar.attempts.saturating_add(1);
            }
            None => {
                self.start(lanes, lane, batch, at);
            }
        }
    }

    /// Starts a step, which ends the one before.
    pub(super) fn step(
        &mut self,
        lanes: &mut [Lane],
        lane: usize,
        batch: &str,
        at: i64,
        (name, round): (u32, Option<u32>),
    ) {
        let bar = self.start(lanes, lane, batch, at);
        let Some(open) = self.0.get_mut(&(lane, batch.to_owned())) else {
            return;
        };
        if let Some(round) = round.filter(|round| *round != open.iteration.1) {
            open.iteration = (at, round);
        }
        end_step(&mut lanes[lane], open, at, BarResult::Built);
        open.step = Some(lanes[lane].parts.len());
        lanes[lane].parts.push(LanePart::running(at, bar, name));
    }

    /// Ends the running step.
    pub(super) fn step_ended(&mut self, lanes: &mut [Lane], lane: usize, batch: &str, at: i64) {
        if let Some(open) = self.0.get(&(lane, batch.to_owned())) {
            end_step(&mut lanes[lane], open, at, BarResult::Built);
        }
    }

    /// Notes when an iteration begins.
    pub(super) fn iterate(&mut self, lane: usize, batch: &str, at: i64, round: u32) {
        if let Some(open) = self.0.get_mut(&(lane, batch.to_owned())) {
            open.iteration = (at, round);
        }
    }

    /// Ends an iteration.
    pub(super) fn judged(
        &mut self,
        lanes: &mut [Lane],
        lane: usize,
        batch: &str,
        at: i64,
        (number, is_right): (u32, bool),
    ) {
        let bar = self.start(lanes, lane, batch, at);
        let Some(open) = self.0.get_mut(&(lane, batch.to_owned())) else {
            return;
        };
        end_step(&mut lanes[lane], open, at, BarResult::Built);
        let result = if is_right {
            BarResult::Built
        } else {
            BarResult::Repeated
        };
        let times = (open.iteration.0, at);
        open.iteration = (at, number + 1);
        lanes[lane].parts.push(LanePart::new(
            PartKind::Iteration,
            times,
            bar,
            number,
            result,
        ));
    }

    /// Ends a batch, and returns its bar. `times` is when a batch without a start began, and when it ended.
    pub(super) fn end(
        &mut self,
        lanes: &mut [Lane],
        (lane, batch): (usize, &str),
        times: (i64, i64),
        result: BarResult,
    ) -> u32 {
        let open = self.0.remove(&(lane, batch.to_owned()));
        let lane = &mut lanes[lane];
        let bar = match open {
            Some(open) => {
                end_step(lane, &open, times.1, result);
                open.bar
            }
            None => lane.push(batch, times.0),
        };
        lane.end(bar, times.1, result);
        bar
    }

    /// Ends what a run left without a record of its end.
    pub(super) fn close(&mut self, lanes: &mut [Lane], at: i64) {
        for ((lane, _), open) in self.0.drain() {
            end_step(&mut lanes[lane], &open, at, BarResult::Interrupted);
            lanes[lane].end(open.bar, at, BarResult::Interrupted);
        }
    }
}

fn end_step(lane: &mut Lane, open: &OpenBatch, at: i64, result: BarResult) {
    let part = open.step.and_then(|step| lane.parts.get_mut(step));
    if let Some(part) = part.filter(|part| part.result == BarResult::Running) {
        part.length = length(part.from, at);
        part.result = result;
    }
}
