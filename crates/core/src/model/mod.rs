//! What Milepost talks about: declarations, events, reasons, outcomes, records. Pure data.

pub mod agent;
pub mod batched;
pub mod call;
pub mod checkpoint;
pub mod choice;
pub mod event;
pub mod facts;
pub mod fingerprint;
pub mod forced;
pub mod money;
pub mod outcome;
pub mod param;
pub mod pin;
pub mod pipeline;
pub mod policy;
pub mod reason;
pub mod record;
pub mod schema;
pub mod stage;
pub mod state;
pub mod status;
pub mod step;
pub mod usage;
