//! The policy of a stage: concurrency, time limit and failures.

use super::expression::{Program, Templated};
use std::time::Duration;

/// How a stage is run. Never part of a fingerprint.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The batches at once; `None`: one, or `--jobs`.
    pub concurrency: Option<Concurrency>,
    /// The time limit of the whole stage.
    pub timeout: Option<Templated<Duration>>,
    /// The memory that reading a foreign file may take, in bytes; `None`: the default of its format.
    pub memory: Option<u64>,
    /// The reaction to a failed batch.
    pub on_failure: OnFailure,
    /// The program that returns the record of a failed batch.
    pub placeholder: Option<Program>,
    /// The number of failed batches that stops the stage.
    pub max_failures: Option<MaxFailures>,
    /// The reaction to outputs that were modified by hand.
    pub(crate) altered: OnModified,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            concurrency: None,
            timeout: None,
            memory: None,
            on_failure: OnFailure::Stop,
            placeholder: None,
            max_failures: None,
            altered: OnModified::Stop,
        }
    }
}

impl Policy {
    /// Returns true if a failed batch makes the stage partial: the others continue, or a placeholder replaces it.
    pub fn tolerates_failures(&self) -> bool {
        self.on_failure == OnFailure::Continue || self.placeholder.is_some()
    }
}

/// The limit of what runs at once.
#[derive(Debug, Clone)]
pub enum Concurrency {
    Batches(Templated<u64>),
    /// Values of one `each` name.
    Values(String, Templated<u64>),
}

/// The reaction to a failed batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// No further batch is started.
    Stop,
    /// The others continue, and the stage is partial.
    Continue,
}

/// The limit of failures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxFailures {
    /// This many batches.
    Count(u64),
    /// This share of the batches, 0 to 1.
    Share(f64),
}

/// The reaction to outputs that were modified by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnModified {
    /// Stop before anything runs.
    Stop,
    /// Move them to quarantine and rebuild them.
    Redo,
}
