//! The pages over HTTP: connections, which requests are admitted, their answers, and streams of events.

pub(super) mod admission;
mod connections;
mod events;
mod limits;
pub(super) mod listener;
pub(super) mod pages;
