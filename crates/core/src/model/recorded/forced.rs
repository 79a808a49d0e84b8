//! Batches that `--force` selected and that no run has rebuilt yet: the intent outlives the run with the flag.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The batches of one run with `--force` that are not rebuilt yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Forced {
    /// The run with `--force`.
    pub run: String,
    /// True if that run ended by a limit, the budget or a failed batch; false if it was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// With `--fresh`, that run and the later ones: only their answers count. Empty without `--fresh`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// The batches, by stage.
    pub batches: BTreeMap<String, BTreeSet<String>>,
    /// With `--fresh`, the stages whose new batches ask agents anew too, until the stage has a checkpoint.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub open: BTreeSet<String>,
}

impl Forced {
    /// Returns true if this batch of the stage is still forced.
    pub(crate) fn has(&self, stage: &str, batch: &str) -> bool {
        let batches = self.batches.get(stage);
        batches.is_some_and(|batches| batches.contains(batch))
    }

    /// Removes one batch of a stage.
    pub(crate) fn remove(&mut self, stage: &str, batch: &str) {
        if let Some(batches) = self.batches.get_mut(stage) {
            batches.remove(batch);
            if batches.is_empty() {
                self.batches.remove(stage);
            }
        }
    }

    /// Returns true if no batch is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.open.is_empty()
    }
}
