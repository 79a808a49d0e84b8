//! Up-to-date checks: scans stages, and validates inputs and outputs.

pub mod planned_disk;
pub mod preconditions;
pub mod revalidate;
pub mod scan;
pub mod scopes;
pub mod validate;
