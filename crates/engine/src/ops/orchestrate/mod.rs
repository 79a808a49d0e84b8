//! What a program that orchestrates other agents asks: is a stage complete, is a file there, join the batches.

pub mod aggregate;
pub mod await_file;
pub mod completion;
mod content;
mod declared;
