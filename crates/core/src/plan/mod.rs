//! Decides which batches a stage has, which of them must run, and why. Pure.

pub(crate) mod batches;
pub mod decide;
pub mod estimate;
pub mod facts;
pub mod lineage;
pub mod machine;
pub mod options;
pub mod overrides;
pub mod pending;
pub mod retired;
pub mod scan;
pub mod schedule;

pub use batches::{changed, expand, inputs, paths, recorded, world};
pub use options::{selection, settings};
