//! What lies under the workspace: every path, the one writer, and the records.

pub mod clock;
pub mod disk;
pub mod journal;
pub mod layout;
pub mod lock;
pub mod manifest;
pub mod statcache;
