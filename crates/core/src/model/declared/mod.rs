//! Declarations: projects, stages, steps and their expressions.

pub mod agent;
pub(crate) mod asset;
pub mod executor;
pub(crate) mod expression;
pub mod keys;
pub(crate) mod names;
pub mod param;
pub mod pipeline;
pub mod policy;
pub mod stage;
pub mod step;
