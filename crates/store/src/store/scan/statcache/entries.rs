//! The file format of the stat cache: sorted entries of one length.

use crate::store::scan::stamp::FileStamp;
use milepost_core::base::digest::Digest;
use std::cmp::Ordering;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// What the cache's file begins with: whatever begins otherwise is no cache of ours.
pub(super) const FORM: &[u8; 16] = b"milepost-stat-3\n";

/// Bytes of an entry in the file: device, inode, size, mtime, ctime, time of recording, digest, and the first bytes of the digest of
/// all that; numbers with the lowest byte first.
pub(super) const ENTRY: usize = CHECKED + 8;

const CHECKED: usize = 6 * 8 + 32;

/// What was recorded of a file, and when, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct CacheEntry {
    pub(crate) stamp: FileStamp,
    pub(crate) recorded: i64,
    pub(crate) digest: Digest,
    pub(crate) used: bool,
}

impl CacheEntry {
    pub(super) fn place(&self) -> (u64, u64) {
        (self.stamp.device, self.stamp.inode)
    }

    fn bytes(&self) -> [u8; ENTRY] {
        let stamp = &self.stamp;
        let mut bytes = [0; ENTRY];
        let numbers = [stamp.device, stamp.inode, stamp.size].map(u64::to_le_bytes);
        let times = [stamp.mtime, stamp.ctime, self.recorded].map(i64::to_le_bytes);
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers.iter().chain(&times)) {
            place.copy_from_slice(number);
        }
        bytes[48..CHECKED].copy_from_slice(self.digest.bytes());
        let check = Digest::of(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check.bytes()[..8]);
        bytes
    }

    fn parse(bytes: &[u8; ENTRY]) -> Option<Self> {
        if Digest::of(&bytes[..CHECKED]).bytes()[..8] != bytes[CHECKED..] {
            return None;
        }
        let number =
            |at: usize| -> Option<[u8; 8]> { bytes.get(at * 8..at * 8 + 8)?.try_into().ok() };
        Some(Self {
            stamp: FileStamp {
                device: u64::from_le_bytes(number(0)?),
                inode: u64::from_le_bytes(number(1)?),
                size: u64::from_le_bytes(number(2)?),
                mtime: i64::from_le_bytes(number(3)?),
                ctime: i64::from_le_bytes(number(4)?),
            },
            recorded: i64::from_le_bytes(number(5)?),
            digest: Digest::from_bytes(bytes[48..CHECKED].try_into().ok()?),
            used: false,
        })
    }
}

/// The form and the entries in order.
pub(super) fn write(mut entries: Vec<CacheEntry>) -> Vec<u8> {
    entries.sort_unstable_by_key(CacheEntry::place);
    let mut bytes = Vec::with_capacity(FORM.len() + entries.len() * ENTRY);
    bytes.extend_from_slice(FORM);
    for entry in &entries {
        bytes.extend_from_slice(&entry.bytes());
    }
    bytes
}

/// The entries; none when one of them is damaged, or they are in no order.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<CacheEntry>> {
    let (entries, rest) = bytes.strip_prefix(FORM)?.as_chunks::<ENTRY>();
    let entries: Vec<_> = entries
        .iter()
        .map(CacheEntry::parse)
        .collect::<Option<_>>()?;
    (rest.is_empty() && entries.is_sorted_by_key(CacheEntry::place)).then_some(entries)
}

/// Searches a file of sorted entries.
pub(super) fn search(file: &File, count: u64, place: (u64, u64)) -> Option<CacheEntry> {
    let at = |index: u64| -> Option<CacheEntry> {
        let mut bytes = [0; ENTRY];
        let offset = FORM.len() as u64 + index * ENTRY as u64;
        file.read_exact_at(&mut bytes, offset).ok()?;
        CacheEntry::parse(&bytes)
    };
    let (mut from, mut upto) = (0, count);
    while from < upto {
        let middle = from + (upto - from) / 2;
        let entry = at(middle)?;
        match entry.place().cmp(&place) {
            Ordering::Equal => return Some(entry),
            Ordering::Less => from = middle + 1,
            Ordering::Greater => upto = middle,
        }
    }
    None
}
