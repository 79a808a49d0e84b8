//! The data: declarations, records, fingerprints, reasons, outcomes. Pure.

pub mod api_kind;
pub mod choice;
pub(crate) mod declared;
pub mod fingerprint;
pub mod http_status;
pub mod money;
pub mod outcome;
pub mod reason;
pub(crate) mod recorded;
pub mod retry;
pub mod schema;
pub mod stage_word;
pub mod totals;

pub use declared::{agent, executor, keys, param, pipeline, policy, stage, step};
pub use recorded::{
    approval, batched, call, checkpoint, event, forced, job, pin, record, state, usage,
};
