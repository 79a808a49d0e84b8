//! Commands that only read a workspace.

pub mod calls;
pub mod diff;
pub mod elements;
pub mod graph;
pub mod log;
pub mod revision;
pub mod show_request;
pub mod status;
pub(crate) mod untracked;
pub mod verify;
