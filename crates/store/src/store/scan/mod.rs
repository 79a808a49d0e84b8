//! Reads of the disk: files by pattern, digests with their cache, and the up-to-date check.
//!
//! Two caches store stamps of files (`stamp`), because they answer different questions and a no-op run needs only the smaller one.
//! `up_to_date` maps the paths and patterns of the last complete run to stamps, 35 bytes and a name each, under the digest of the
//! declarations. `statcache` maps inodes to digests, 80 bytes each, independent of declarations and paths. A run reads `up_to_date`
//! first, and does not open `statcache` if nothing changed. Removing either costs nothing but time.

pub mod files;
pub mod folder;
pub mod folders;
mod listing;
pub mod redirects;
pub mod stamp;
pub mod statcache;
pub mod up_to_date;
