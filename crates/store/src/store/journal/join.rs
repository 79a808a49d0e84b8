//! Joins small segments, as earlier versions wrote them.
//!
//! A joined file is complete before its segments are removed, and where both are there, it counts. So a kill leaves files that the next
//! `gc` removes.

use super::JournalError;
use super::head::{HeadFile, read_head};
use super::read::read_all;
use super::segments::{SegmentFile, all, segments};
use super::write::FULL;
use crate::store::disk::{Disk, DiskError};
use crate::store::layout::Layout;
use crate::store::read;
use std::fs::TryLockError;
use std::io;

/// Joins the small segments before the last two, on which writers and readers work. Returns the number of files that the journal has less
/// then; without a disk, would have. `None`: another process reads the journal.
///
/// # Errors
/// If the journal cannot be read or is broken, or the disk fails.
pub fn join_segments(layout: &Layout, disk: Option<&Disk>) -> Result<Option<u64>, JournalError> {
    let files = segments(layout)?;
    let groups = small(layout, &files)?;
    let mut unneeded = all(layout)?;
    unneeded.retain(|file| !files.contains(file) || groups.iter().any(|all| all.contains(file)));
    if unneeded.is_empty() {
        return Ok(Some(0));
    }
    // A broken journal stays as it is.
    read_all(layout, &mut |_, _| {})?;
    let fewer = (unneeded.len() - groups.len()) as u64;
    let Some(disk) = disk else {
        return Ok(Some(fewer));
    };
    let folder = layout.journal();
    let lock = read::open_folder(&folder).map_err(DiskError::reading(&folder))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => {
            return Err(DiskError::new("read", &folder, error).into());
        }
    }
    for group in &groups {
        let joined = SegmentFile {
            first: group[0].first,
            last: group[group.len() - 1].last,
        };
        disk.write_atomic_by(&joined.path(layout), |out| {
            for file in group {
                io::copy(&mut read::open(file.path(layout))?, out)?;
            }
            Ok(())
        })?;
    }
    for file in unneeded {
        disk.remove_file(&file.path(layout))?;
    }
    Ok(Some(fewer))
}

/// Returns groups of consecutive files of which each but the last is smaller than a full segment.
fn small(layout: &Layout, files: &[SegmentFile]) -> Result<Vec<Vec<SegmentFile>>, JournalError> {
    // The head of the journal names a segment that stays.
    let head = match read_head(layout) {
        HeadFile::Whole(head) => head.segment,
        HeadFile::Missing => u64::MAX,
        HeadFile::Damaged => 0,
    };
    let sealed = files.iter().take(files.len().saturating_sub(2));
    let mut groups: Vec<(Vec<SegmentFile>, u64)> = Vec::new();
    for file in sealed.take_while(|file| file.last < head) {
        let path = file.path(layout);
        let found = path.metadata().map_err(DiskError::reading(&path))?;
        match groups.last_mut() {
            Some((group, size)) if *size < FULL && found.len() < FULL => {
                group.push(*file);
                *size += found.len();
            }
            _ => groups.push((vec![*file], found.len())),
        }
    }
    let groups = groups.into_iter().map(|(group, _)| group);
    Ok(groups.filter(|group| group.len() > 1).collect())
}
