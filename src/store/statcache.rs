//! A cache in front of hashing: the digest of a file that has not changed since it was hashed, by what the file system says of it.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::clock::Clock;
use crate::base::digest::{Digest, Hasher};

use super::clock::SystemClock;
use super::disk::{Disk, DiskError};

/// First line of the cache's file: whatever has another is no cache of ours.
const FORM: &str = "{\"milepost\":\"stat-cache\",\"version\":1}";

/// A file that changed this shortly before it was hashed may have changed again with the same times (their steps are up to 2 s wide
/// on some file systems), so what was recorded of it is not believed. In nanoseconds.
const TOO_YOUNG: i128 = 2_000_000_000;

/// What nobody asked for is kept this long. In nanoseconds: 30 days.
const KEPT_UNUSED: i128 = 30 * 24 * 3600 * 1_000_000_000;

/// Bytes read at once.
const BUFFER: u64 = 1 << 20;

/// Digests of files by device, inode, size, mtime and ctime. It can be thrown away at any time.
pub struct StatCache {
    path: PathBuf,
    clock: Box<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<(u64, u64), Entry>,
    changed: bool,
}

/// Times in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Entry {
    size: u64,
    mtime: i128,
    ctime: i128,
    recorded: i128,
    digest: Digest,
    used: bool,
}

impl Entry {
    fn is_of(&self, data: &Metadata) -> bool {
        self.size == data.size() && self.mtime == mtime(data) && self.ctime == ctime(data)
    }

    /// Whether the file had been left alone for long enough when it was hashed; a time in the future is never that.
    fn was_settled(&self) -> bool {
        self.mtime.max(self.ctime) + TOO_YOUNG < self.recorded
    }
}

fn mtime(data: &Metadata) -> i128 {
    i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec())
}

fn ctime(data: &Metadata) -> i128 {
    i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec())
}

impl StatCache {
    /// The cache that is kept in this file; an empty one if it is not there, torn, or of another form.
    pub fn open(path: &Path) -> StatCache {
        // A run under a fixed clock must not believe it here: the kernel's times come from the machine's.
        StatCache::with_clock(path, Box::new(SystemClock))
    }

    fn with_clock(path: &Path, clock: Box<dyn Clock>) -> StatCache {
        let entries = std::fs::read_to_string(path)
            .ok()
            .and_then(|text| read(&text))
            .unwrap_or_default();
        StatCache {
            path: path.to_owned(),
            clock,
            state: Mutex::new(State {
                entries,
                changed: false,
            }),
        }
    }

    /// Digest and size in bytes of a file; it is read only if the cache does not know it.
    ///
    /// # Errors
    /// As opening and reading the file; `IsADirectory` for a folder.
    pub fn digest_of(&self, path: &Path) -> io::Result<(Digest, u64)> {
        let data = std::fs::metadata(path)?;
        if let Some(digest) = self.known(&data) {
            return Ok((digest, data.size()));
        }
        let mut file = File::open(path)?;
        let before = file.metadata()?;
        let recorded = self.clock.now().as_nanosecond();
        let (digest, size) = hash(&mut file, before.size())?;
        let entry = Entry {
            size,
            mtime: mtime(&before),
            ctime: ctime(&before),
            recorded,
            digest,
            used: true,
        };
        if entry.is_of(&file.metadata()?) {
            let mut state = self.state();
            state.entries.insert((before.dev(), before.ino()), entry);
            state.changed = true;
        }
        Ok((digest, size))
    }

    fn known(&self, data: &Metadata) -> Option<Digest> {
        let mut state = self.state();
        let entry = state.entries.get_mut(&(data.dev(), data.ino()))?;
        if !data.is_file() || !entry.is_of(data) || !entry.was_settled() {
            return None;
        }
        entry.used = true;
        Some(entry.digest)
    }

    /// Writes the cache to its file, if there is anything that the file does not say.
    ///
    /// # Errors
    /// What the disk says. The cache being only a cache, a run can go on.
    pub fn save(&self, disk: &Disk) -> Result<(), DiskError> {
        let mut state = self.state();
        if !state.changed {
            return Ok(());
        }
        let now = self.clock.now().as_nanosecond();
        state
            .entries
            .retain(|_, entry| entry.used || now - entry.recorded < KEPT_UNUSED);
        disk.write_atomic(&self.path, write(&state.entries).as_bytes())?;
        state.changed = false;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// A line of the file: device, inode, size, mtime, ctime, time of recording, digest. Times in nanoseconds since 1970, until 2262.
type Line = (u64, u64, u64, i64, i64, i64, Digest);

/// The form, a line for each entry, and the digest of all that as the last line: half a cache is none.
fn write(entries: &HashMap<(u64, u64), Entry>) -> String {
    let mut text = format!("{FORM}\n");
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| **key);
    for (&(device, inode), entry) in sorted {
        let times = [entry.mtime, entry.ctime, entry.recorded].map(i64::try_from);
        let [Ok(mtime), Ok(ctime), Ok(recorded)] = times else {
            continue;
        };
        let line: Line = (
            device,
            inode,
            entry.size,
            mtime,
            ctime,
            recorded,
            entry.digest,
        );
        if let Ok(line) = serde_json::to_string(&line) {
            text += &line;
            text.push('\n');
        }
    }
    let seal = Digest::of(&text);
    text + &format!("\"{seal}\"\n")
}

fn read(text: &str) -> Option<HashMap<(u64, u64), Entry>> {
    let (content, seal) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let sealed = &text[..=content.len()];
    if seal != format!("\"{}\"", Digest::of(sealed)) {
        return None;
    }
    let mut lines = content.lines();
    if lines.next() != Some(FORM) {
        return None;
    }
    lines
        .map(|line| {
            let (device, inode, size, mtime, ctime, recorded, digest) =
                serde_json::from_str::<Line>(line).ok()?;
            let [mtime, ctime, recorded] = [mtime, ctime, recorded].map(i128::from);
            Some((
                (device, inode),
                Entry {
                    size,
                    mtime,
                    ctime,
                    recorded,
                    digest,
                    used: false,
                },
            ))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use std::fs;

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::base::clock::StillClock;

    /// A cache by a clock that is so many seconds ahead of the machine's.
    fn cache_ahead(path: &Path, seconds: i64) -> StatCache {
        let now = SystemClock.now() + SignedDuration::from_secs(seconds);
        StatCache::with_clock(path, Box::new(StillClock(now)))
    }

    /// The file of a cache in which every digest was replaced by that of `lie`: who believes the cache says so.
    fn lying(path: &Path, lie: &str) {
        let mut entries = read(&fs::read_to_string(path).unwrap()).unwrap();
        for entry in entries.values_mut() {
            entry.digest = Digest::of(lie);
        }
        fs::write(path, write(&entries)).unwrap();
    }

    struct Place {
        folder: tempfile::TempDir,
        file: PathBuf,
        cache: PathBuf,
    }

    impl Place {
        fn new(text: &str) -> Place {
            let folder = tempfile::tempdir().unwrap();
            let (file, cache) = (
                folder.path().join("file"),
                folder.path().join("stat-cache.jsonl"),
            );
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

        fn digest(&self) -> Digest {
            StatCache::open(&self.cache)
                .digest_of(&self.file)
                .unwrap()
                .0
        }
    }

    #[test]
    fn a_settled_file_is_not_read_again() {
        let place = Place::recorded("text", 3);
        assert_eq!(place.digest(), Digest::of("lie"));
    }

    #[test]
    fn a_young_or_future_file_is() {
        assert_eq!(Place::recorded("text", 1).digest(), Digest::of("text"));
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
        let whole = fs::read_to_string(&place.cache).unwrap();
        for torn in [
            &whole[..whole.len() - 1],
            &whole[1..],
            "",
            "\n",
            &whole.replace('[', " ["),
        ] {
            fs::write(&place.cache, torn).unwrap();
            assert_eq!(place.digest(), Digest::of("text"), "{torn}");
        }
        fs::write(&place.cache, whole).unwrap();
        assert_eq!(place.digest(), Digest::of("lie"));
    }

    #[test]
    fn nothing_new_writes_nothing_and_the_unused_goes_in_time() {
        let place = Place::recorded("text", 3);
        fs::remove_file(&place.cache).unwrap();
        let cache = StatCache::open(&place.cache);
        cache.save(&Disk::real()).unwrap();
        assert!(!place.cache.exists());

        cache.digest_of(&place.file).unwrap();
        cache.save(&Disk::real()).unwrap();
        let later = cache_ahead(&place.cache, 31 * 24 * 3600);
        let other = place.folder.path().join("other");
        fs::write(&other, "").unwrap();
        assert_eq!(later.digest_of(&other).unwrap(), (Digest::of(""), 0));
        later.save(&Disk::real()).unwrap();
        assert_eq!(
            read(&fs::read_to_string(&place.cache).unwrap())
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let place = Place::new("");
        let cache = StatCache::open(&place.cache);
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
