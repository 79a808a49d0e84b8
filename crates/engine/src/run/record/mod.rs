//! The records of a run: the journal, publishing, retirement, checkpoints, recovery, quarantine.

pub mod begin;
pub mod commit;
pub mod ending;
pub mod finish;
pub mod forced;
pub mod progress;
pub mod protect;
pub mod quarantined;
pub mod recorder;
pub mod recover;
pub mod retire;
