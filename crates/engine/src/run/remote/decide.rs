//! Decides the batches without a record of a job that has ended.

use crate::run::remote::arrays::{OpenArray, OpenBatch};
use crate::run::remote::outcomes::{Consequence, Unrecorded, consequence, outcome};
use crate::run::remote::{JobEnd, Remote};
use milepost_core::model::outcome::Outcome;
use milepost_core::plan::scan::StageScan;
use std::collections::BTreeMap;

/// The decision on a batch whose job ended without a record of it.
pub(crate) enum Decided {
    Again { alone: bool },
    Retry(Outcome),
    Fail(Outcome),
}

impl Remote<'_> {
    /// Returns what the end of a job means for its batches without a record.
    pub(crate) fn decide(
        &self,
        array: &OpenArray,
        number: u64,
        scan: &StageScan,
        open: &BTreeMap<usize, OpenBatch>,
    ) -> Vec<(usize, Decided)> {
        let job = &array.jobs[number as usize];
        let end = match (job.end(), array.exit_code(number)) {
            (None, Some(0)) => Some(JobEnd::Done),
            (None, Some(_)) => Some(JobEnd::Failed),
            (end, _) => end,
        };
        let printed = array.printed(number);
        let end = match end {
            // The output decides only if the scheduler reports no precise reason.
            None | Some(JobEnd::Failed | JobEnd::Cancelled) => {
                self.executor.end_by_output(&printed).or(end)
            }
            end => end,
        };
        let mut decided = Vec::new();
        for &index in &job.batches {
            let Some(batch) = open.get(&index) else {
                continue;
            };
            let process = job.process_at(&scan.batches[index].batch.key);
            let unrecorded = Unrecorded {
                was_begun: process.is_some(),
                was_first: process.is_some_and(|process| process.finished == 0),
                had_process: !job.processes.is_empty(),
                failures: batch.failures,
                losses: batch.losses,
            };
            let why = |kind| {
                let name = self.executor.describe(&array.id, number);
                let mut outcome = outcome(kind, &name, &array.needs);
                let node = process.map(|process| format!("on node {}", process.node));
                let code = array.exit_code(number);
                let code = code.map(|code| format!("its script ended with exit code {code}"));
                outcome.details = node.into_iter().chain(code).collect();
                outcome.details.extend(printed.iter().cloned());
                outcome
            };
            decided.push((
                index,
                match consequence(end, unrecorded, &array.needs) {
                    Consequence::Again { alone } => Decided::Again { alone },
                    Consequence::Retry(kind) => Decided::Retry(why(kind)),
                    Consequence::Fail(kind) => Decided::Fail(why(kind)),
                },
            ));
        }
        decided
    }
}
