//! The output of `run` and `watch`: progress line by line, and the summary.

pub(crate) mod bars;
pub(crate) mod notice;
pub(crate) mod summary;
pub(crate) mod watch;
pub(crate) mod workspaces;
