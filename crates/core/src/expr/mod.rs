//! The languages inside a declaration: jq programs, templates, plain paths, and the scope of names that they see. Pure.

pub mod jq;
pub mod json;
pub mod mentions;
pub mod name;
pub mod place;
pub mod pointer;
#[cfg(test)]
pub(crate) mod sample;
pub mod scope;
pub mod select;
pub mod shell;
pub mod template;
