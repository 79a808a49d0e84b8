//! The commands that run stages: progress, `watch`, lists of workspaces, and jobs.

mod ask;
pub(crate) mod job;
pub(crate) mod progress;
pub(crate) mod watch;
pub(crate) mod workspaces;
