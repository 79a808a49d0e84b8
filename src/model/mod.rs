//! What Milepost talks about: declarations, events, reasons, outcomes, records. Pure data.

pub mod checkpoint;
pub mod event;
pub mod fingerprint;
pub mod outcome;
pub mod reason;
pub mod record;
pub mod state;
