//! Watches a project: scans after changes, and decides when to run.

mod folders;
pub(crate) mod machine;
mod notify;
mod pending;
mod watcher;

pub(crate) use machine::Pace;
pub(crate) use notify::Notify;
pub(crate) use watcher::{WatchAction, WatchEvent, WatchSettings, Watcher};
