//! Data of `ops` as text for people and as JSON for programs. Nothing here reads or prints.

pub mod accept;
pub mod call;
pub(crate) mod calls;
pub mod clean;
pub mod diff;
pub mod external;
pub mod graph;
pub(crate) mod groups;
pub mod init;
pub mod log;
pub(crate) mod manifest;
pub(crate) mod notice;
pub(crate) mod overrides;
pub(crate) mod paint;
pub(crate) mod params;
pub(crate) mod plan;
pub mod reason;
pub(crate) mod report;
pub(crate) mod request;
pub mod status;
pub(crate) mod table;
pub mod verify;
pub(crate) mod watch;
pub(crate) mod ways;
pub mod why;
pub mod words;
