//! Reading an answer's text: the JSON or the TAP YAML block in it.

pub mod salvage;
pub mod tap_yaml;
