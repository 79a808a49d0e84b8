//! Readers of an answer's text: the JSON or the TAP YAML block in it, and the reasoning before it.

pub mod json;
pub mod reasoning;
pub mod tap_yaml;
