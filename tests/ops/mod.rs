//! What Milepost can tell and do beside running: asked of the library, on temporary projects.

mod again;
mod log;
mod project;
mod status;
mod verify;
mod why;
