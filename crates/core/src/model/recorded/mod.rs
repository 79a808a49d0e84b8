//! The records on disk: events of the journal, records of batches, checkpoints, calls of agents.

pub mod approval;
pub(crate) mod batch_state;
pub mod batched;
pub mod call;
pub mod checkpoint;
pub mod event;
mod event_parts;
pub mod forced;
pub mod job;
pub(crate) mod made;
pub mod pin;
pub mod record;
pub mod state;
pub mod usage;
