//! The head of the journal: the number and digest of its last record when a run ended. Records that are cut off later are missed.
//!
//! The head is written when the record of the run's end is durable. So after a crash it can be behind the journal, but never ahead.

use super::read::Tail;
use crate::store::disk::{Disk, DiskError};
use crate::store::layout::{self, Layout};
use crate::store::self_checked::{self, SelfCheck, SelfChecked};
use milepost_core::base::digest::Digest;
use milepost_core::model::event::Record;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;

/// The last record of the journal at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHead {
    /// The number of its segment, from 1.
    pub segment: u64,
    /// The number of records in that segment up to it.
    pub records: u64,
    /// The digest of its line.
    pub digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<Digest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFile {
    /// There is none: an earlier version wrote the journal, or no run has ended yet.
    Missing,
    /// It cannot be read, or was changed.
    Damaged,
    /// It is as it was written.
    Whole(JournalHead),
}

impl SelfChecked for JournalHead {
    fn checksum(&mut self) -> &mut Option<Digest> {
        &mut self.checksum
    }
}

/// Reads the head of a journal.
pub fn read_head(layout: &Layout) -> HeadFile {
    match crate::store::read::bytes(layout.at(&layout::journal_head())) {
        Ok(bytes) => match self_checked::read::<JournalHead>(&bytes) {
            (Some(head), SelfCheck::Whole) => HeadFile::Whole(head),
            _ => HeadFile::Damaged,
        },
        Err(cause) if cause.kind() == ErrorKind::NotFound => HeadFile::Missing,
        Err(_) => HeadFile::Damaged,
    }
}

/// Returns true if the head is a record of the journal, as far as the records since its last seal show, or the journal was moved
/// away.
pub(super) fn is_led_to(layout: &Layout, records: &[Record], tail: &Tail) -> bool {
    let HeadFile::Whole(head) = read_head(layout) else {
        return read_head(layout) == HeadFile::Missing;
    };
    let before = tail.lines - records.len() as u64;
    let Some(at) = head.records.checked_sub(before) else {
        return head.segment <= tail.segment;
    };
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    let found = match records.get(at) {
        Some(next) => next.prev,
        None => tail.last,
    };
    tail.segment == 0
        || head.segment < tail.segment
        || (head.segment == tail.segment
            && head.records <= tail.lines
            && found == Some(head.digest))
}

/// Writes the head of a journal durably.
pub(super) fn write_head(disk: &Disk, layout: &Layout, end: &Tail) -> Result<(), DiskError> {
    let Some(digest) = end.last else {
        return Ok(());
    };
    let path = layout.at(&layout::journal_head());
    let head = JournalHead {
        segment: end.segment,
        records: end.lines,
        digest,
        checksum: None,
    };
    let bytes = self_checked::to_bytes(&head)
        .map_err(|error| DiskError::new("write", &path, error.into()))?;
    disk.write_atomic(&path, &bytes)
}
