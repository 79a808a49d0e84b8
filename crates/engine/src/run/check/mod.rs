//! Up-to-date checks: scans stages, and validates inputs and outputs.

pub(crate) mod ahead;
pub(crate) mod batch_scanner;
pub(crate) mod by_page;
pub(crate) mod dependencies;
pub(crate) mod planned_disk;
pub(crate) mod preconditions;
pub(crate) mod restore;
pub(crate) mod revalidate;
pub(crate) mod scan;
pub(crate) mod scopes;
pub(crate) mod validate;
mod writers;
