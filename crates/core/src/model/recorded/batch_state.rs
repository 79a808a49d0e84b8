//! The state of a batch of a workspace.

use super::record::{BatchRecord, Made};
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::outcome::Outcome;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchState {
    pub phase: Phase,
    /// The record, once the batch was finished.
    pub record: Option<BatchRecord>,
    /// Files at its paths that Milepost wrote and no record lists.
    pub remains: BTreeMap<RelPath, Digest>,
    /// The failure before the current attempt. The batch stays failed until an attempt ends.
    pub failure: Option<Box<Outcome>>,
}

/// The phase of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// Not built yet.
    #[default]
    Waiting,
    /// An attempt is running.
    Running {
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Waiting for another attempt.
    Backoff {
        /// The failed attempt.
        attempt: u32,
    },
    Complete,
    /// Failed in the last run.
    Failed {
        outcome: Box<Outcome>,
    },
}

impl Phase {
    /// Returns the word for people and JSON.
    pub(crate) fn word(&self) -> &'static str {
        self.into()
    }
}

impl BatchState {
    /// Returns the failure in its last finished attempt; `None` if that was successful, or there was none.
    pub fn last_failure(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Failed { outcome } => Some(outcome),
            _ => self.failure.as_deref(),
        }
    }

    /// Returns the files that Milepost wrote for the batch, with their contents.
    pub fn made(&self) -> impl Iterator<Item = (&RelPath, Digest)> {
        let made = self.record.iter().flat_map(|record| {
            let by_run = |made: &&Made| !record.is_by_hand(&made.path);
            record.outputs.iter().filter(by_run)
        });
        let made = made.map(|made| (&made.path, made.digest));
        made.chain(self.remains.iter().map(|(path, digest)| (path, *digest)))
    }

    /// Returns true if an attempt is running, or waits for the next one.
    pub fn is_tried(&self) -> bool {
        matches!(self.phase, Phase::Running { .. } | Phase::Backoff { .. })
    }

    /// Ends the current attempt without a result.
    pub fn rest(&mut self) {
        let failure = self.last_failure().cloned();
        self.failure = None;
        self.phase = match failure {
            Some(outcome) => Phase::Failed {
                outcome: Box::new(outcome),
            },
            None if self.record.is_some() => Phase::Complete,
            None => Phase::Waiting,
        };
    }

    /// Returns its files: the recorded outputs and the remains.
    pub fn files(&self) -> impl Iterator<Item = &RelPath> {
        let made = self.record.iter().flat_map(|record| &record.outputs);
        made.map(|made| &made.path).chain(self.remains.keys())
    }

    /// Returns false if it is not finished, lacks elements, is out of date, or has outputs that a person accepted.
    pub fn is_settled(&self) -> bool {
        let is_whole = |record: &BatchRecord| {
            record.stale.is_none() && record.pin.is_none() && record.failure().is_none()
        };
        self.phase == Phase::Complete
            && self.remains.is_empty()
            && self.record.as_ref().is_some_and(is_whole)
    }
}
