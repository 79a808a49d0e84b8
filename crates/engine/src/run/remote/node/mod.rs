//! The node's side: the process of a job, and its log.

pub(crate) mod worker;
pub(crate) mod worker_log;
