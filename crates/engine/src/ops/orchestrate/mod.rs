//! Operations for programs that orchestrate agents: is a stage complete, is a file complete, join the batches.

pub mod aggregate;
pub mod await_file;
pub mod completion;
mod declared_file;
mod elements;
