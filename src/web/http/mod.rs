//! The pages over HTTP: which requests are admitted, their answers, and streams of events.

pub(super) mod admission;
mod events;
pub(super) mod server;
