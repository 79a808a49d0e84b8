//! The batches of a stage, and the files that they read.

pub mod changed;
pub mod expand;
pub mod inputs;
pub mod paths;
pub mod recorded;
pub mod world;
