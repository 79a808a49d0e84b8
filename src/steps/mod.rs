//! Steps: one file or folder a kind of work.

pub mod pdf;
pub mod xlsx;
