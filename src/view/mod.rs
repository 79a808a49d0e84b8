//! The results of `ops` as text for people: one file for each command. Nothing here reads the disk or prints.

pub mod accept;
pub(crate) mod calls;
pub mod clean;
pub mod diff;
pub mod external;
pub mod graph;
pub(crate) mod import_review;
pub mod init;
pub mod log;
pub(crate) mod orchestrate;
pub(crate) mod params;
pub(crate) mod plan;
pub(crate) mod request;
pub(crate) mod run;
pub mod status;
pub mod text;
pub mod verify;
pub mod why;
