//! Commands that only read a workspace.

pub mod calls;
pub mod diff;
pub mod elements;
pub mod graph;
pub mod log;
pub(crate) mod orphans;
pub mod show_request;
pub mod status;
pub mod verify;
