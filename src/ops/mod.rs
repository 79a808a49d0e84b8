//! What Milepost can do: one function a capability. They return data and print nothing.

pub mod accept;
pub mod calls;
pub mod clean;
pub mod diff;
pub mod elements;
pub mod ended;
pub mod gc;
pub mod glance;
pub mod graph;
pub mod hold;
pub mod init;
pub mod log;
pub mod open;
pub mod origin;
pub mod orphans;
pub mod plan;
pub mod present;
pub mod project;
pub mod run;
pub mod schema;
pub mod show_request;
pub mod status;
pub mod used;
pub mod values;
pub mod verify;
pub mod why;
