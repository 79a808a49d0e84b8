//! Checks of outputs: JSON Schema and conservation of keys.

pub mod conserve;
pub mod content;
pub mod schema;
pub mod schemas;
