//! The file format of the stat cache: sorted entries of one length.

use crate::store::scan::stamp::FileStamp;
use milepost_core::base::digest::Digest;
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::os::unix::fs::FileExt as _;

/// The first bytes of the file. A file with others is ignored.
pub(super) const FORM: &[u8; 16] = b"milepost-stat-3\n";

/// Bytes of an entry in the file: device, inode, size, mtime, ctime, time of recording, digest, and the first bytes of the digest of
/// all that; numbers with the lowest byte first.
pub(super) const ENTRY: usize = CHECKED + 8;

const CHECKED: usize = 6 * 8 + 32;

/// The recorded digest of a file; `recorded` is in nanoseconds since 1970.
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
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&self.stamp.device.to_le_bytes());
        bytes[8..40].copy_from_slice(&self.stamp.bytes());
        bytes[40..48].copy_from_slice(&self.recorded.to_le_bytes());
        bytes[48..CHECKED].copy_from_slice(self.digest.bytes());
        let check = Digest::of(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check.bytes()[..8]);
        bytes
    }

    fn parse(bytes: &[u8; ENTRY]) -> Option<Self> {
        if Digest::of(&bytes[..CHECKED]).bytes()[..8] != bytes[CHECKED..] {
            return None;
        }
        let (device, rest) = bytes.split_first_chunk()?;
        let (stamp, rest) = rest.split_first_chunk()?;
        let (recorded, rest) = rest.split_first_chunk()?;
        Some(Self {
            stamp: FileStamp::of_bytes(u64::from_le_bytes(*device), stamp),
            recorded: i64::from_le_bytes(*recorded),
            digest: Digest::from_bytes(*rest.first_chunk()?),
            used: false,
        })
    }
}

/// Writes the form and the entries, which are in order.
pub(super) fn write<'a>(
    out: &mut dyn Write,
    entries: impl IntoIterator<Item = &'a CacheEntry>,
) -> io::Result<()> {
    out.write_all(FORM)?;
    entries
        .into_iter()
        .try_for_each(|entry| out.write_all(&entry.bytes()))
}

/// Reads the entries.
///
/// # Errors
/// When the file cannot be read, one of them is damaged, or they are in no order.
pub(super) fn parse(file: File) -> io::Result<Vec<CacheEntry>> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let size = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut form = [0; FORM.len()];
    file.read_exact(&mut form)?;
    if form != *FORM {
        return Err(damaged());
    }
    let mut entries = Vec::with_capacity((size / ENTRY as u64) as usize);
    while !file.fill_buf()?.is_empty() {
        let mut bytes = [0; ENTRY];
        file.read_exact(&mut bytes)?;
        entries.push(CacheEntry::parse(&bytes).ok_or_else(damaged)?);
    }
    let is_sorted = entries.is_sorted_by_key(CacheEntry::place);
    is_sorted.then_some(entries).ok_or_else(damaged)
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
