//! The stat cache: digests of files by their stamps, so that unchanged files are not hashed again.
//!
//! A large cache is not read for a few files: they are searched in its file, and what is new goes to a second file.

mod entries;
#[cfg(test)]
mod tests;

use crate::store::read;
use entries::{CacheEntry, ENTRY, FORM, parse, search, write};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;

use super::files::digest_from;
use super::stamp::FileStamp;
use crate::store::disk::{Disk, DiskError};

/// A cache with more entries is searched in its file while there are few lookups.
const SEARCHED: u64 = 4096;

/// Up to this many lookups search the file instead of reading all of it.
const FEW: usize = 256;

/// Unused entries are removed after 30 days. In nanoseconds.
const KEPT_UNUSED: i64 = 30 * 24 * 3600 * 1_000_000_000;

/// Above this number of new entries, or a sixteenth of a large cache, new entries are merged with those of the file.
const APART: usize = if cfg!(debug_assertions) { 16 } else { 1 << 16 };

/// The digests of files by device, inode, size, mtime and ctime. It can be removed at any time.
pub struct StatCache {
    path: PathBuf,
    clock: Box<dyn Clock>,
    /// Read at the first lookup.
    state: OnceLock<Mutex<CacheState>>,
}

/// A file with its digest and stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedFile {
    pub digest: Digest,
    pub stamp: FileStamp,
    /// True if the same stamp means the same content.
    pub settled: bool,
}

#[derive(Default)]
struct CacheState {
    /// The entries of the file, if it was read, and merged new ones, in order.
    kept: Vec<CacheEntry>,
    /// The entries that are newer, and those that were found in the file.
    added: HashMap<(u64, u64), CacheEntry>,
    /// The file that is searched for other entries, and their number.
    searched: Option<(File, u64)>,
    /// How often it was searched.
    searches: usize,
    changed: bool,
}

impl CacheState {
    fn open(path: &Path, now: i64) -> Self {
        let searched = read::open(path).ok().and_then(|file| {
            let size = file.metadata().ok()?.len().checked_sub(FORM.len() as u64)?;
            let count = size / ENTRY as u64;
            (size % ENTRY as u64 == 0 && count > SEARCHED).then_some((file, count))
        });
        let kept = match searched {
            Some(_) => Vec::new(),
            None => entries(path, now),
        };
        let newer = entries(&changes(path), now).into_iter();
        Self {
            kept,
            added: newer.map(|entry| (entry.place(), entry)).collect(),
            searched,
            ..Self::default()
        }
    }

    /// Reads the file that was searched.
    fn read_all(&mut self, path: &Path, now: i64) {
        if self.searched.take().is_some() {
            self.kept = entries(path, now);
        }
    }

    /// Adds an entry.
    fn add(&mut self, entry: CacheEntry) {
        self.added.insert(entry.place(), entry);
        self.changed = true;
        if self.searched.is_none() && self.added.len() > APART.max(self.kept.len() / 16) {
            self.join();
        }
    }

    /// Moves new entries to `kept`, where they take less memory.
    fn join(&mut self) {
        let mut added: Vec<CacheEntry> = self.added.drain().map(|(_, entry)| entry).collect();
        added.sort_unstable_by_key(CacheEntry::place);
        self.kept.reserve_exact(added.len());
        self.kept.append(&mut added);
        // This sort merges two sequences that are in order in linear time, and of equals the newer comes last.
        self.kept.sort_by_key(CacheEntry::place);
        self.kept.dedup_by(|newer, kept| {
            let is_same = newer.place() == kept.place();
            if is_same {
                *kept = *newer;
            }
            is_same
        });
    }

    fn entry(&mut self, place: (u64, u64), path: &Path, now: i64) -> Option<&mut CacheEntry> {
        if let Some((file, count)) = &self.searched
            && !self.added.contains_key(&place)
        {
            self.searches += 1;
            if self.searches > FEW {
                self.read_all(path, now);
            } else {
                let found = search(file, *count, place).filter(|entry| entry.recorded <= now)?;
                self.added.insert(place, found);
            }
        }
        match self.added.get_mut(&place) {
            Some(entry) => Some(entry),
            None => {
                let at = self.kept.binary_search_by_key(&place, CacheEntry::place);
                at.ok().map(|at| &mut self.kept[at])
            }
        }
    }
}

/// Returns the entries of a file in order, except those of a later time.
fn entries(path: &Path, now: i64) -> Vec<CacheEntry> {
    let mut entries = read::open(path).and_then(parse).unwrap_or_default();
    // A clock that was set back comes by the same times again: what was recorded later than it shows may not be so.
    entries.retain(|entry| entry.recorded <= now);
    entries
}

/// Returns the file of the entries that are newer than the cache of this path.
fn changes(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-changes");
    PathBuf::from(name)
}

impl StatCache {
    /// Opens the cache in this file with a given clock.
    pub fn with_clock(path: &Path, clock: Box<dyn Clock>) -> StatCache {
        StatCache {
            path: path.to_owned(),
            clock,
            state: OnceLock::new(),
        }
    }

    /// Returns the digest and the size in bytes of a file. It is read only if the cache does not know it.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or read; with `IsADirectory` for a folder.
    pub fn digest_of(&self, path: &Path) -> io::Result<(Digest, u64)> {
        self.look(path).map(|seen| (seen.digest, seen.stamp.size))
    }

    /// Returns the current state of a file. It is read only if the cache does not know it.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or read; with `IsADirectory` for a folder.
    pub fn look(&self, path: &Path) -> io::Result<HashedFile> {
        let data = std::fs::metadata(path)?;
        if data.is_file()
            && let Some(seen) = self.known(FileStamp::of(&data))
        {
            return Ok(seen);
        }
        self.hash(read::open(path)?)
    }

    /// Returns the current state of an open regular file; `None` for anything else. It is read only if the cache does not know it.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn look_at(&self, open: File) -> io::Result<Option<HashedFile>> {
        let data = open.metadata()?;
        if !data.is_file() {
            return Ok(None);
        }
        match self.known(FileStamp::of(&data)) {
            Some(seen) => Ok(Some(seen)),
            None => self.hash_from(open, FileStamp::of(&data)).map(Some),
        }
    }

    /// An open regular file as it is, read in any case and not kept; none when it is something else.
    ///
    /// # Errors
    /// As reading the file.
    pub(crate) fn read(&self, open: File) -> io::Result<Option<HashedFile>> {
        let data = open.metadata()?;
        if !data.is_file() {
            return Ok(None);
        }
        seen(open, FileStamp::of(&data), self.now()).map(Some)
    }

    /// Returns the state of the file at a path if the cache knows its stamp. The file is not read.
    pub fn cached(&self, path: &Path) -> Option<HashedFile> {
        self.known(FileStamp::of(&std::fs::metadata(path).ok()?))
    }

    fn hash(&self, file: File) -> io::Result<HashedFile> {
        let before = FileStamp::of(&file.metadata()?);
        self.hash_from(file, before)
    }

    fn hash_from(&self, file: File, before: FileStamp) -> io::Result<HashedFile> {
        let recorded = self.now();
        let seen = seen(file, before, recorded)?;
        // An unsettled digest is never trusted, and would replace an entry that may still be valid.
        if seen.settled {
            let entry = CacheEntry {
                stamp: before,
                recorded,
                digest: seen.digest,
                used: true,
            };
            self.state().add(entry);
        }
        Ok(seen)
    }

    /// Returns the time in nanoseconds since 1970.
    pub fn now(&self) -> i64 {
        i64::try_from(self.clock.now().as_nanosecond()).unwrap_or(i64::MAX)
    }

    /// Returns what the cache knows of the file with this stamp.
    pub fn known(&self, stamp: FileStamp) -> Option<HashedFile> {
        let now = self.now();
        let mut state = self.state();
        let entry = state.entry((stamp.device, stamp.inode), &self.path, now)?;
        if entry.stamp != stamp || !stamp.was_settled(entry.recorded) {
            return None;
        }
        entry.used = true;
        Some(HashedFile {
            digest: entry.digest,
            stamp,
            settled: true,
        })
    }

    /// Writes the cache to its file if anything changed.
    ///
    /// # Errors
    /// Fails if the disk fails. A run can ignore that, because the file is a cache.
    pub fn save(&self, disk: &Disk) -> Result<(), DiskError> {
        if self.state.get().is_none() {
            return Ok(());
        }
        let now = self.now();
        let mut state = self.state();
        if !state.changed {
            return Ok(());
        }
        let newer = changes(&self.path);
        if state.searched.is_some() && state.added.len() <= FEW {
            let mut added: Vec<&CacheEntry> = state.added.values().collect();
            added.sort_unstable_by_key(|entry| entry.place());
            disk.write_swap_by(&newer, |out| write(out, added))?;
        } else {
            state.read_all(&self.path, now);
            state.join();
            let is_kept = |entry: &&CacheEntry| {
                entry.used || now.saturating_sub(entry.recorded) < KEPT_UNUSED
            };
            let kept = state.kept.iter().filter(is_kept);
            disk.write_atomic_by(&self.path, |out| write(out, kept))?;
            if newer.exists() {
                disk.remove_file(&newer)?;
            }
        }
        state.changed = false;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        let open = || Mutex::new(CacheState::open(&self.path, self.now()));
        let state = self.state.get_or_init(open);
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hashes a file at a time in nanoseconds since 1970; `before` is its stamp from before.
fn seen(mut file: File, before: FileStamp, now: i64) -> io::Result<HashedFile> {
    let (digest, size) = digest_from(&mut file, before.size)?;
    let unchanged = before == FileStamp::of(&file.metadata()?) && size == before.size;
    Ok(HashedFile {
        digest,
        stamp: FileStamp { size, ..before },
        settled: unchanged && before.was_settled(now),
    })
}
