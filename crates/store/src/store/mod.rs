//! Every path under the workspace, and the one writer of the disk.

pub mod accepted;
mod agents;
pub mod checkpoint;
pub mod clock;
pub mod disk;
pub mod gc;
pub mod id;
pub mod iterations;
pub mod jobs;
pub mod journal;
pub mod layout;
pub mod lock;
pub mod manifest;
pub mod progress;
pub mod publish;
pub mod quarantine;
mod scan;
pub mod scratch;
pub mod workspace;

pub use agents::{answers, batches, calls, checksummed, leases, named_calls};
pub(crate) use disk::search;
pub use disk::{read, self_checked};
pub use scan::{files, folder, folders, redirects, stamp, statcache, up_to_date};
