//! The files of the journal. A segment is a file; segments that were joined are one file with the numbers of the first and the last in its
//! name.

use super::{JournalError, Position};
use crate::store::disk::DiskError;
use crate::store::layout::Layout;
use crate::store::read;
use std::cmp::Reverse;
use std::fs::File;
use std::path::PathBuf;

/// A file of the journal: a segment, or several that were joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentFile {
    /// The number of its first segment, from 1.
    pub(super) first: u64,
    /// The number of its last segment.
    pub(super) last: u64,
}

impl SegmentFile {
    /// Returns the file with a segment; if there is none, the one that it would be written to.
    pub(super) fn with(files: &[Self], segment: u64) -> Self {
        let mut files = files.iter();
        let found = files.find(|file| (file.first..=file.last).contains(&segment));
        found.copied().unwrap_or(Self {
            first: segment,
            last: segment,
        })
    }

    pub(super) fn path(self, layout: &Layout) -> PathBuf {
        if self.first == self.last {
            return layout.segment(self.first);
        }
        let name = format!("{:06}-{:06}.jsonl", self.first, self.last);
        layout.journal().join(name)
    }

    fn named(name: &str) -> Option<Self> {
        let number = |digits: &str| {
            let plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|_| plain)
        };
        let name = name.strip_suffix(".jsonl")?;
        let (first, last) = name.split_once('-').unwrap_or((name, name));
        Some(Self {
            first: number(first)?,
            last: number(last)?,
        })
    }

    /// Returns true if a record that seals a segment can be in the file, as its first record or as another one.
    pub(super) fn seals(self, segment: u64, is_first: bool) -> bool {
        if is_first {
            segment + 1 == self.first
        } else {
            (self.first..=self.last).contains(&segment)
        }
    }
}

/// Returns the files of the journal in order.
pub(super) fn segments(layout: &Layout) -> Result<Vec<SegmentFile>, JournalError> {
    let mut files = all(layout)?;
    let mut end = 0;
    files.retain(|file| {
        let is_next = file.last > end;
        end = end.max(file.last);
        is_next
    });
    Ok(files)
}

/// Returns all files of the journal, also those whose lines a joined file has.
pub(super) fn all(layout: &Layout) -> Result<Vec<SegmentFile>, JournalError> {
    let folder = layout.journal();
    let names = read::names(&folder).map_err(DiskError::reading(&folder))?;
    let mut files: Vec<SegmentFile> = names
        .iter()
        .filter_map(|name| SegmentFile::named(name))
        .collect();
    files.sort_unstable_by_key(|file| (file.first, Reverse(file.last)));
    Ok(files)
}

/// Returns the last segment and its size; `None` if there is no journal.
///
/// # Errors
/// If the journal cannot be read.
pub fn written(layout: &Layout) -> Result<Option<Position>, JournalError> {
    let Some(file) = segments(layout)?.pop() else {
        return Ok(None);
    };
    let path = file.path(layout);
    let found = path.metadata().map_err(DiskError::reading(&path))?;
    Ok(Some(Position {
        segment: file.last,
        offset: found.len(),
    }))
}

/// Keeps `gc` from joining segments until it is dropped; `None` if there is no journal, or the file system has no locks.
pub(super) fn shared(layout: &Layout) -> Option<File> {
    let folder = read::open_folder(&layout.journal()).ok()?;
    read::uninterrupted(|| folder.lock_shared()).ok()?;
    Some(folder)
}
