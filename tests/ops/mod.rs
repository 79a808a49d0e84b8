//! What Milepost can tell and do beside running: asked of the library, on temporary projects.

mod accept;
mod again;
mod clean;
mod diff;
mod faulty;
mod follow;
mod gc;
mod graph;
mod init;
mod live;
mod log;
mod names;
mod report;
mod revisions;
mod schema;
mod status;
mod trace;
mod verify;
mod wait;
mod why;
