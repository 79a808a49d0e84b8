//! Every path under the workspace, and the one writer of the disk.

pub mod disk;
pub mod journal;
pub mod layout;
pub mod manifest;
