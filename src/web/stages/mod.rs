//! Pages about stages and their batches.

pub(super) mod approve;
pub(super) mod batch;
pub(super) mod list;
pub(super) mod stage;
pub(super) mod why;
