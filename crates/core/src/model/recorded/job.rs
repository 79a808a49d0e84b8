//! The job of a scheduler in which a batch ran.

use crate::base::duration::show_duration;
use crate::model::executor::ExecutorName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The job of a scheduler in which a batch ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct JobOfBatch {
    /// The scheduler.
    pub executor: ExecutorName,
    /// The scheduler's name of the job, such as `17_3`.
    pub job: String,
    /// The name of its node.
    pub node: String,
    /// How long the job waited in the queue, in milliseconds, by the clocks of the runner and the node.
    pub queued_ms: u64,
}

impl fmt::Display for JobOfBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            executor,
            job,
            node,
            queued_ms,
        } = self;
        let queued = show_duration(Duration::from_millis(*queued_ms));
        write!(f, "{executor} job {job} on {node}, {queued} in the queue")
    }
}
