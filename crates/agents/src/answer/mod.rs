//! Readers of an answer's text: the JSON or the TAP YAML block in it.

pub mod json;
pub mod tap_yaml;
