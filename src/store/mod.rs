//! Every path under the workspace, and the one writer of the disk.

pub mod answers;
pub mod batches;
pub mod calls;
pub mod checkpoint;
pub mod clock;
pub mod disk;
pub mod files;
pub mod folder;
pub mod folders;
pub mod gc;
pub mod glance;
pub mod id;
pub mod journal;
pub mod layout;
pub mod leases;
pub mod lock;
pub mod manifest;
pub mod progress;
pub mod publish;
pub mod quarantine;
pub mod rounds;
pub mod scratch;
pub mod sealed;
pub mod stamp;
pub mod statcache;
pub mod workspace;
