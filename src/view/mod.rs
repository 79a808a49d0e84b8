//! Data of `ops` as text for people and as JSON for programs. Nothing here reads or prints.

pub mod accept;
pub mod call;
pub mod calls;
pub mod clean;
pub mod diff;
pub mod graph;
pub mod groups;
pub mod init;
pub mod log;
pub mod manifest;
pub mod notice;
pub mod overrides;
pub mod paint;
pub mod params;
pub mod plan;
pub mod reason;
pub mod report;
pub mod request;
pub mod status;
pub mod table;
pub mod verify;
pub mod watch;
pub mod ways;
pub mod why;
pub mod words;
