//! The results of `ops` as text for people: one file for each command or group. Nothing here reads the disk or prints.

pub(crate) mod calls;
pub mod change;
pub mod diff;
pub(crate) mod eval;
pub mod external;
pub mod graph;
pub mod init;
pub mod log;
pub(crate) mod orchestrate;
pub(crate) mod plan;
pub(crate) mod request;
pub(crate) mod run;
pub mod status;
pub mod text;
pub mod trace;
pub mod verify;
pub mod why;
