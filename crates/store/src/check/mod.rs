//! What must be true of outputs: JSON Schema, conservation of keys, and tests written in jq.

pub mod conserve;
pub mod content;
pub mod schema;
pub mod schemas;
