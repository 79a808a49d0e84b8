//! The stat cache: digests of files by their stamps, so that unchanged files are not hashed again.

use crate::store::read;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use milepost_core::base::clock::Clock;
use milepost_core::base::digest::{Digest, Hasher};

use super::stamp::FileStamp;
use crate::store::disk::{Disk, DiskError};

/// What the cache's file begins with: whatever begins otherwise is no cache of ours.
const FORM: &[u8; 16] = b"milepost-stat-2\n";

/// Bytes of an entry in the file: device, inode, size, mtime, ctime, time of recording, digest; numbers with the lowest byte first.
const ENTRY: usize = 6 * 8 + 32;

/// What nobody asked for is kept this long. In nanoseconds: 30 days.
const KEPT_UNUSED: i64 = 30 * 24 * 3600 * 1_000_000_000;

/// Bytes read at once.
const BUFFER: u64 = 1 << 20;

/// The digests of files by device, inode, size, mtime and ctime. It can be removed at any time.
pub struct StatCache {
    path: PathBuf,
    clock: Box<dyn Clock>,
    /// Read when it is first asked.
    state: OnceLock<Mutex<CacheState>>,
}

/// A file with its digest and stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedFile {
    /// Its digest.
    pub digest: Digest,
    /// Its stamp.
    pub stamp: FileStamp,
    /// True if the same stamp means the same content.
    pub settled: bool,
}

#[derive(Default)]
struct CacheState {
    /// The entries of the file, in the order of their ids.
    kept: Vec<CacheEntry>,
    /// Those that it lacks.
    added: HashMap<FileId, CacheEntry>,
    changed: bool,
}

/// Device and inode.
type FileId = (u64, u64);

impl CacheState {
    fn entry(&mut self, id: FileId) -> Option<&mut CacheEntry> {
        match self.kept.binary_search_by_key(&id, CacheEntry::id) {
            Ok(at) => Some(&mut self.kept[at]),
            Err(_) => self.added.get_mut(&id),
        }
    }

    fn insert(&mut self, entry: CacheEntry) {
        match self.entry(entry.id()) {
            Some(known) => *known = entry,
            None => _ = self.added.insert(entry.id(), entry),
        }
        self.changed = true;
    }

    /// Returns all entries in the order of their ids.
    fn sorted(&self) -> Vec<&CacheEntry> {
        let mut all: Vec<_> = self.kept.iter().chain(self.added.values()).collect();
        all.sort_by_key(|entry| entry.id());
        all
    }
}

/// What was recorded of a file, and when, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct CacheEntry {
    stamp: FileStamp,
    recorded: i64,
    digest: Digest,
    used: bool,
}

impl CacheEntry {
    fn id(&self) -> FileId {
        (self.stamp.device, self.stamp.inode)
    }
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
        // What is not settled would never be believed, and what was known of the file before may be asked for once more.
        if seen.settled {
            let entry = CacheEntry {
                stamp: before,
                recorded,
                digest: seen.digest,
                used: true,
            };
            self.state().insert(entry);
        }
        Ok(seen)
    }

    /// Returns the time in nanoseconds since 1970.
    pub fn now(&self) -> i64 {
        i64::try_from(self.clock.now().as_nanosecond()).unwrap_or(i64::MAX)
    }

    /// Returns what the cache knows of the file with this stamp.
    pub fn known(&self, stamp: FileStamp) -> Option<HashedFile> {
        let mut state = self.state();
        let entry = state.entry((stamp.device, stamp.inode))?;
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
        state
            .kept
            .retain(|entry| entry.used || now.saturating_sub(entry.recorded) < KEPT_UNUSED);
        disk.write_atomic(&self.path, &write(&state.sorted()))?;
        state.changed = false;
        Ok(())
    }

    fn kept(&self) -> Option<Vec<CacheEntry>> {
        let file = read::open(&self.path).ok()?;
        let length = file.metadata().ok()?.len();
        read(BufReader::with_capacity(1 << 16, file), length)
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        let state = self.state.get_or_init(|| {
            let mut kept = self.kept().unwrap_or_default();
            // A clock that was set back comes by the same times again: what was recorded later than it shows may not be so.
            let now = self.now();
            kept.retain(|entry| entry.recorded <= now);
            Mutex::new(CacheState {
                kept,
                ..CacheState::default()
            })
        });
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file as it is, at a time in nanoseconds since 1970; `before` is what the file system said of it before.
fn seen(mut file: File, before: FileStamp, now: i64) -> io::Result<HashedFile> {
    let (digest, size) = hash(&mut file, before.size)?;
    let unchanged = before == FileStamp::of(&file.metadata()?) && size == before.size;
    Ok(HashedFile {
        digest,
        stamp: FileStamp { size, ..before },
        settled: unchanged && before.was_settled(now),
    })
}

/// Digest and length of what is read.
fn hash(file: &mut File, size: u64) -> io::Result<(Digest, u64)> {
    // One byte more than there should be: then the end is seen by the second read.
    let mut buffer = vec![0; (size + 1).min(BUFFER) as usize];
    let mut hasher = Hasher::new();
    let mut length = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finish(), length)),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The form, the entries in order, and the digest of all that: half a cache is none.
fn write(sorted: &[&CacheEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FORM.len() + sorted.len() * ENTRY + 32);
    bytes.extend_from_slice(FORM);
    for entry in sorted {
        let stamp = &entry.stamp;
        for number in [stamp.device, stamp.inode, stamp.size] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for time in [stamp.mtime, stamp.ctime, entry.recorded] {
            bytes.extend_from_slice(&time.to_le_bytes());
        }
        bytes.extend_from_slice(entry.digest.bytes());
    }
    let seal = Digest::of(&bytes);
    bytes.extend_from_slice(seal.bytes());
    bytes
}

fn read(mut from: impl Read, length: u64) -> Option<Vec<CacheEntry>> {
    let (mut form, mut entry, mut seal) = ([0; FORM.len()], [0; ENTRY], [0; 32]);
    let entries = length.checked_sub((form.len() + seal.len()) as u64)?;
    from.read_exact(&mut form).ok()?;
    if form != *FORM || !entries.is_multiple_of(ENTRY as u64) {
        return None;
    }
    let mut hasher = Hasher::new();
    hasher.update(form);
    let count = usize::try_from(entries).ok()? / ENTRY;
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        from.read_exact(&mut entry).ok()?;
        hasher.update(entry);
        let number =
            |at: usize| -> Option<[u8; 8]> { entry.get(at * 8..at * 8 + 8)?.try_into().ok() };
        let stamp = FileStamp {
            device: u64::from_le_bytes(number(0)?),
            inode: u64::from_le_bytes(number(1)?),
            size: u64::from_le_bytes(number(2)?),
            mtime: i64::from_le_bytes(number(3)?),
            ctime: i64::from_le_bytes(number(4)?),
        };
        all.push(CacheEntry {
            stamp,
            recorded: i64::from_le_bytes(number(5)?),
            digest: Digest::from_bytes(entry[48..].try_into().ok()?),
            used: false,
        });
    }
    from.read_exact(&mut seal).ok()?;
    let is_whole = *hasher.finish().bytes() == seal && all.is_sorted_by_key(CacheEntry::id);
    is_whole.then_some(all)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use std::fs;

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::store::clock::SystemClock;
    use milepost_core::base::clock::StillClock;

    /// A cache by a clock that is so many seconds ahead of the machine's.
    fn cache_ahead(path: &Path, seconds: i64) -> StatCache {
        let now = SystemClock.now() + SignedDuration::from_secs(seconds);
        StatCache::with_clock(path, Box::new(StillClock(now)))
    }

    /// The file of a cache, if there is one, in which every digest was replaced by that of `lie`: who believes the cache says so.
    fn lying(path: &Path, lie: &str) {
        let Ok(bytes) = fs::read(path) else {
            return;
        };
        let mut entries = read(&bytes[..], bytes.len() as u64).unwrap();
        for entry in &mut entries {
            entry.digest = Digest::of(lie);
        }
        fs::write(path, write(&entries.iter().collect::<Vec<_>>())).unwrap();
    }

    struct Place {
        folder: tempfile::TempDir,
        file: PathBuf,
        cache: PathBuf,
    }

    impl Place {
        fn new(text: &str) -> Place {
            let folder = tempfile::tempdir().unwrap();
            let (file, cache) = (folder.path().join("file"), folder.path().join("stat-cache"));
            fs::write(&file, text).unwrap();
            Place {
                folder,
                file,
                cache,
            }
        }

        /// Records the file with a clock so far ahead, and makes the record a lie.
        fn recorded(text: &str, ahead: i64) -> Place {
            let place = Place::new(text);
            let cache = cache_ahead(&place.cache, ahead);
            assert_eq!(
                cache.digest_of(&place.file).unwrap(),
                (Digest::of(text), text.len() as u64)
            );
            cache.save(&Disk::real()).unwrap();
            lying(&place.cache, "lie");
            place
        }

        /// By a clock that is a minute ahead.
        fn digest(&self) -> Digest {
            let cache = cache_ahead(&self.cache, 60);
            cache.digest_of(&self.file).unwrap().0
        }
    }

    #[test]
    fn a_settled_file_is_not_read_again() {
        let place = Place::recorded("text", 3);
        assert_eq!(place.digest(), Digest::of("lie"));
    }

    #[test]
    fn what_was_recorded_before_the_clock_was_set_back_is_not_believed() {
        let place = Place::recorded("text", 30);
        let cache = cache_ahead(&place.cache, 20);
        assert_eq!(cache.digest_of(&place.file).unwrap().0, Digest::of("text"));
        assert_eq!(place.digest(), Digest::of("lie"));
    }

    #[test]
    fn a_young_or_future_file_is() {
        assert_eq!(Place::recorded("text", 0).digest(), Digest::of("text"));
        let place = Place::new("text");
        let future = std::time::SystemTime::from(Timestamp::now() + SignedDuration::from_hours(1));
        File::options()
            .write(true)
            .open(&place.file)
            .unwrap()
            .set_modified(future)
            .unwrap();
        let cache = cache_ahead(&place.cache, 60);
        cache.digest_of(&place.file).unwrap();
        cache.save(&Disk::real()).unwrap();
        lying(&place.cache, "lie");
        assert_eq!(place.digest(), Digest::of("text"));
    }

    #[test]
    fn a_change_that_keeps_size_and_mtime_is_seen_by_ctime() {
        let place = Place::recorded("text", 3);
        let modified = fs::metadata(&place.file).unwrap().modified().unwrap();
        fs::write(&place.file, "next").unwrap();
        File::options()
            .write(true)
            .open(&place.file)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        assert_eq!(place.digest(), Digest::of("next"));
    }

    #[test]
    fn another_file_under_the_name_is_seen() {
        let place = Place::recorded("text", 3);
        let other = place.folder.path().join("other");
        fs::write(&other, "next").unwrap();
        fs::rename(&other, &place.file).unwrap();
        assert_eq!(place.digest(), Digest::of("next"));
    }

    #[test]
    fn a_torn_cache_is_none() {
        let place = Place::recorded("text", 3);
        let whole = fs::read(&place.cache).unwrap();
        let mut flipped = whole.clone();
        flipped[40] ^= 1;
        for torn in [
            &whole[..whole.len() - 1],
            &whole[1..],
            &whole[..48],
            &[],
            &flipped,
        ] {
            fs::write(&place.cache, torn).unwrap();
            assert_eq!(place.digest(), Digest::of("text"), "{} bytes", torn.len());
        }
        fs::write(&place.cache, whole).unwrap();
        assert_eq!(place.digest(), Digest::of("lie"));
    }

    #[test]
    fn nothing_new_writes_nothing_and_the_unused_goes_in_time() {
        let place = Place::recorded("text", 3);
        fs::remove_file(&place.cache).unwrap();
        let cache = StatCache::with_clock(&place.cache, Box::new(SystemClock));
        cache.save(&Disk::real()).unwrap();
        assert!(!place.cache.exists());

        cache.digest_of(&place.file).unwrap();
        cache.save(&Disk::real()).unwrap();
        let later = cache_ahead(&place.cache, 31 * 24 * 3600);
        let other = place.folder.path().join("other");
        fs::write(&other, "").unwrap();
        assert_eq!(later.digest_of(&other).unwrap(), (Digest::of(""), 0));
        later.save(&Disk::real()).unwrap();
        let bytes = fs::read(&place.cache).unwrap();
        assert_eq!(read(&bytes[..], bytes.len() as u64).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let place = Place::new("");
        let cache = StatCache::with_clock(&place.cache, Box::new(SystemClock));
        assert_eq!(
            cache.digest_of(place.folder.path()).unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
        assert_eq!(
            cache.digest_of(&place.cache).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
