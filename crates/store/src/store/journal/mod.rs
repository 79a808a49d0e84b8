//! The journal: JSON lines in segments, each line with the digest of the line before.

mod filter;
mod follow;
mod head;
mod join;
mod read;
mod segments;
mod write;

pub use filter::read_with;
pub use follow::{Cursor, NoPosition, Position};
pub use head::{HeadFile, JournalHead, read_head};
pub use join::join_segments;
pub use read::{JournalPlace, Tail, latest, read_all, read_since_seal, sealed_at};
pub use segments::written;
pub use write::{Journal, OpenedJournal, TornTail};

use super::disk::DiskError;
use std::path::PathBuf;

/// A journal that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A line before the last is not a record, or does not follow the line before it.
    #[error(
        "the journal is broken: {place}: {problem}. Nothing was repaired. \
         Put back `.milepost/journal` from a copy; or move `.milepost/journal` away and `manifests` with it, \
         and every stage runs again"
    )]
    Broken {
        /// Where.
        place: JournalPlace,
        problem: String,
    },
    /// A segment between others is missing.
    #[error(
        "the journal is broken: {path} is missing, and later segments are there. Nothing was repaired. \
         Put it back from a copy; or move `.milepost/journal` away and `manifests` with it, and every stage runs again"
    )]
    Missing {
        /// The segment.
        path: PathBuf,
    },
    /// No record ends at the place that a reader continues from.
    #[error(
        "no record of {path} ends at {position}: the journal was moved away or replaced, or `gc` joined its segments, in the meantime. \
         Start again at its end"
    )]
    Gone {
        /// The segment.
        path: PathBuf,
        /// The place.
        position: Position,
    },
    /// A record has a kind that this program does not know.
    #[error("{place}: `{kind}` is written by a newer Milepost: update milepost")]
    Newer {
        /// Where.
        place: JournalPlace,
        /// The kind of the record.
        kind: String,
    },
    /// A record could not be written as JSON.
    #[error("a record of the journal cannot be written: {0}")]
    Record(#[from] serde_json::Error),
    /// An earlier write failed, and its partial line could not be removed.
    #[error("the journal is closed: a write to {path} failed earlier. Run again to continue")]
    Stopped {
        /// The segment.
        path: PathBuf,
    },
}
