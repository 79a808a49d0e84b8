//! Finds the batch that built a file.

use milepost_core::model::record::BatchRecord;
use milepost_core::model::state::State;
use milepost_core::plan::expand::batch_name;
use std::collections::HashMap;

/// The stage and record that built each file, by path.
pub(crate) struct Makers<'a>(HashMap<&'a str, (&'a str, &'a BatchRecord)>);

impl<'a> Makers<'a> {
    /// Collects all recorded outputs.
    pub(crate) fn of(state: &'a State) -> Self {
        let mut makers = HashMap::new();
        for (stage, known) in &state.stages {
            for record in known
                .batches
                .values()
                .filter_map(|batch| batch.record.as_ref())
            {
                for made in &record.outputs {
                    makers.insert(made.path.as_str(), (stage.as_str(), record));
                }
            }
        }
        Self(makers)
    }

    /// Returns the stage and the record that built a file.
    pub(crate) fn get(&self, path: &str) -> Option<(&'a str, &'a BatchRecord)> {
        self.0.get(path).copied()
    }

    /// Returns the recorded outputs with a file name, in order.
    pub(crate) fn named(&self, name: &str) -> Vec<&'a str> {
        let paths = self.0.keys().copied();
        let has_name = |path: &&str| path.rsplit('/').next() == Some(name);
        let mut named: Vec<&str> = paths.filter(has_name).collect();
        named.sort_unstable();
        named
    }

    /// Returns the batch that built a file, such as `classify/batch_1`.
    pub(crate) fn name(&self, path: &str) -> Option<String> {
        self.get(path)
            .map(|(stage, record)| batch_name(stage, &record.key))
    }
}
