//! The commands that run stages: progress, `watch`, and lists of workspaces.

pub(crate) mod progress;
pub(crate) mod watch;
pub(crate) mod workspaces;
