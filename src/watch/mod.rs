//! Watches a project: looks when something changed, and says when a run is due. A face for people, as the command line is.

mod bell;
mod folders;
pub(crate) mod machine;
mod todo;
mod watcher;

pub(crate) use bell::Bell;
pub(crate) use machine::Pace;
pub(crate) use watcher::{Due, Settings, Told, Waits, Watcher};
