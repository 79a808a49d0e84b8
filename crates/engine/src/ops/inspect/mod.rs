//! Commands that only read a workspace.

pub mod batches;
pub mod calls;
pub mod diff;
pub mod elements;
pub mod file;
pub mod follow;
pub mod graph;
pub mod history;
pub mod live;
pub mod log;
pub mod names;
pub mod report;
pub mod revision;
pub mod show_request;
pub mod status;
pub(crate) mod untracked;
pub mod verify;
