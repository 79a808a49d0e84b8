//! Decides: which batches there are, which must run and why. Pure.

pub mod decide;
mod details;
pub mod estimate;
pub mod expand;
pub mod facts;
pub mod inputs;
pub mod lineage;
pub mod machine;
pub mod options;
pub mod overrides;
pub mod paths;
pub mod pending;
pub mod recorded;
pub mod retired;
pub mod scan;
pub mod schedule;
pub mod selection;
pub mod settings;
pub mod world;
