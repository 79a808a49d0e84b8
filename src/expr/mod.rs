//! The languages inside a declaration: jq programs, templates, plain paths, and the scope of names that they see. Pure.

pub mod jq;
pub mod mentions;
pub mod place;
#[cfg(test)]
pub mod sample;
