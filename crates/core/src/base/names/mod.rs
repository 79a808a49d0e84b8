//! Names of files: safe ones for values, those that are reserved, and those that some file systems take for one.

pub mod collision;
pub mod reserved;
pub mod safe_name;
