//! Batches that `--force` selected and that no run has rebuilt yet: the intent outlives the run that was asked for it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is left of one run with `--force`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Forced {
    /// The run that was asked for it.
    pub run: String,
    /// Whether that run ended by itself, by a limit, a budget or a failed batch. Otherwise it was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// With `--fresh`, the runs from that one on: only answers that agents gave to these count. Without it, none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// The batches that are left, by stage.
    pub batches: BTreeMap<String, BTreeSet<String>>,
    /// With `--fresh`, the stages whose new batches ask agents anew too, until the stage has a checkpoint.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub open: BTreeSet<String>,
}

impl Forced {
    /// Returns true if this batch of the stage is left.
    pub(crate) fn has(&self, stage: &str, batch: &str) -> bool {
        let batches = self.batches.get(stage);
        batches.is_some_and(|batches| batches.contains(batch))
    }

    /// Removes the batches of a stage for which `gone` holds.
    pub(crate) fn remove(&mut self, stage: &str, gone: impl Fn(&str) -> bool) {
        if let Some(batches) = self.batches.get_mut(stage) {
            batches.retain(|batch| !gone(batch));
            if batches.is_empty() {
                self.batches.remove(stage);
            }
        }
    }

    /// Returns true if nothing is left of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.open.is_empty()
    }
}
