//! Finds the calls of agents that a workspace still uses.

use milepost_core::model::state::{Phase, State};
use milepost_store::store::calls;
use milepost_store::store::layout::Layout;
use std::collections::{BTreeSet, HashMap};
use std::io;

pub(crate) struct CallsInUse {
    /// Numbers of calls by run.
    calls: HashMap<String, BTreeSet<u64>>,
}

impl CallsInUse {
    /// Collects the calls that recorded outputs were built from, those of unfinished batches, and those without an answer.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(crate) fn of(layout: &Layout, state: &State) -> io::Result<Self> {
        let mut used: HashMap<String, BTreeSet<u64>> = HashMap::new();
        let mut add = |run: &str, number| {
            used.entry(run.to_owned()).or_default().insert(number);
        };
        for batch in state
            .stages
            .values()
            .flat_map(|known| known.batches.values())
        {
            for from in batch.record.iter().flat_map(|record| &record.answers) {
                add(&from.run, from.call);
            }
        }
        for call in calls::read(&layout.calls())? {
            let known = state.stages.get(&call.sent.stage);
            let batch = known.and_then(|known| known.batches.get(&call.sent.batch));
            let is_open =
                batch.is_some_and(|batch| batch.record.is_none() || batch.phase != Phase::Complete);
            if is_open || call.response.is_none() {
                add(&call.run, call.number);
            }
        }
        Ok(Self { calls: used })
    }

    /// Returns true if a call of a run is in use.
    pub(crate) fn has(&self, run: &str, number: u64) -> bool {
        let numbers = self.calls.get(run);
        numbers.is_some_and(|numbers| numbers.contains(&number))
    }
}
