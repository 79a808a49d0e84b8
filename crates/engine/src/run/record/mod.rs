//! The records of a run: the journal, publishing, retirement, checkpoints, recovery, quarantine.

pub(crate) mod begin;
pub(crate) mod claims;
pub(crate) mod commit;
pub(crate) mod early_pages;
pub(crate) mod ending;
pub(crate) mod finish;
pub(crate) mod forced;
pub(crate) mod progress;
pub(crate) mod protect;
pub(crate) mod quarantined;
pub mod recorder;
pub(crate) mod recover;
pub(crate) mod retire;
pub(crate) mod words;
