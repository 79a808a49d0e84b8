//! What declarations say: projects, stages, steps and their expressions.

pub mod agent;
pub mod asset;
pub mod expression;
pub mod keys;
pub mod names;
pub mod param;
pub mod pipeline;
pub mod policy;
pub mod stage;
pub mod step;
