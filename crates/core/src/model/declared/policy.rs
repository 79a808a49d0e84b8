//! Policy of a stage: how many batches at once, how long, and what to do on failure.

use super::expression::{Program, Templated};
use std::time::Duration;

/// How a stage is run. Never part of a fingerprint.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Batches at once; none: one, or what `--jobs` says.
    pub concurrency: Option<Concurrency>,
    /// Of the whole stage.
    pub timeout: Option<Templated<Duration>>,
    /// What a failed batch does to those after it.
    pub on_failure: OnFailure,
    /// Record for a failed batch.
    pub placeholder: Option<Program>,
    /// Stop after so many failed batches.
    pub max_failures: Option<MaxFailures>,
    /// What to do about outputs that somebody altered.
    pub(crate) altered: OnAltered,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            concurrency: None,
            timeout: None,
            on_failure: OnFailure::Stop,
            placeholder: None,
            max_failures: None,
            altered: OnAltered::Stop,
        }
    }
}

impl Policy {
    /// Returns true if a failed batch makes the stage partial: the others go on, or a placeholder is written for it.
    pub fn tolerates_failures(&self) -> bool {
        self.on_failure == OnFailure::Continue || self.placeholder.is_some()
    }
}

/// How many at once.
#[derive(Debug, Clone)]
pub enum Concurrency {
    /// Batches.
    Batches(Templated<u64>),
    /// Values of one `each` name.
    Values(String, Templated<u64>),
}

/// What a failed batch does to those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// No further batch is started.
    Stop,
    /// The others go on; the stage is partial.
    Continue,
}

/// How many failures are too many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxFailures {
    /// So many batches.
    Count(u64),
    /// Such a share of the batches, 0 to 1.
    Share(f64),
}

/// What to do about outputs that somebody altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnAltered {
    /// Stop before anything runs.
    Stop,
    /// Put them into quarantine and make them again.
    Redo,
}
