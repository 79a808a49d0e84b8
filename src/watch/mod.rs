//! Watches a project: looks when something changed, and says when a run is due. A face for people, as the command line is.

mod bell;
mod folders;
pub mod machine;
mod todo;
mod watcher;

pub use bell::Bell;
pub use machine::Pace;
pub use watcher::{Due, Settings, Told, Waits, Watcher};
