//! Pages about stages and their batches.

pub(super) mod approve;
pub(super) mod batch;
mod due;
pub(super) mod list;
pub(super) mod stage;
mod versions;
pub(super) mod why;
