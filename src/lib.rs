//! Milepost: a Make-like state-machine runner over files. See `docs/design.md` for the layers.

pub mod base;
pub mod decl;
pub mod expr;
pub mod model;

pub mod agents;
pub mod base;
pub mod expr;
pub mod steps;
pub mod steps;
pub mod store;
