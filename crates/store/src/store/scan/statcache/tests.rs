//! The stat cache believes nothing that may have changed.

#![allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]

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
    if !path.exists() {
        return;
    }
    let mut entries = parsed(path);
    for entry in &mut entries {
        entry.digest = Digest::of(lie);
    }
    put(path, entries);
}

fn parsed(path: &Path) -> Vec<CacheEntry> {
    parse(File::open(path).unwrap()).unwrap()
}

fn put(path: &Path, mut entries: Vec<CacheEntry>) {
    entries.sort_by_key(CacheEntry::place);
    write(&mut File::create(path).unwrap(), &entries).unwrap();
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
fn a_large_cache_is_searched_and_what_is_new_is_kept_beside_it() {
    let place = Place::recorded("text", 3);
    let known = parsed(&place.cache)[0];
    let other = |n: u64| {
        let inode = n * 3;
        let stamp = FileStamp {
            inode,
            device: known.stamp.device,
            ..known.stamp
        };
        let digest = Digest::of(n.to_string());
        (
            stamp,
            CacheEntry {
                stamp,
                digest,
                ..known
            },
        )
    };
    let mut all: Vec<CacheEntry> = (0..SEARCHED).map(|n| other(n).1).collect();
    all.push(known);
    put(&place.cache, all);
    let before = fs::read(&place.cache).unwrap();
    let cache = cache_ahead(&place.cache, 60);
    let found = |n: u64| cache.known(other(n).0).map(|seen| seen.digest);
    for n in [0, 1, 77, SEARCHED - 1] {
        assert_eq!(found(n), Some(Digest::of(n.to_string())), "{n}");
    }
    assert_eq!(found(SEARCHED + 1), None);
    assert_eq!(cache.digest_of(&place.file).unwrap().0, Digest::of("lie"));
    // One file more: the cache stays as it is.
    let file = place.folder.path().join("other");
    fs::write(&file, "more").unwrap();
    assert_eq!(cache.digest_of(&file).unwrap().0, Digest::of("more"));
    cache.save(&Disk::real()).unwrap();
    assert_eq!(fs::read(&place.cache).unwrap(), before);
    lying(&changes(&place.cache), "lie too");
    let later = cache_ahead(&place.cache, 120);
    assert_eq!(later.digest_of(&file).unwrap().0, Digest::of("lie too"));
    // Many files: the cache is written anew.
    for n in 0..=FEW as u64 {
        let name = place.folder.path().join(format!("many_{n}"));
        fs::write(&name, n.to_string()).unwrap();
        later.digest_of(&name).unwrap();
    }
    later.save(&Disk::real()).unwrap();
    assert!(!changes(&place.cache).exists());
    let again = cache_ahead(&place.cache, 180);
    assert_eq!(again.digest_of(&file).unwrap().0, Digest::of("lie too"));
    assert_eq!(again.known(other(5).0).unwrap().digest, Digest::of("5"));
}

#[test]
fn many_new_entries_replace_earlier_ones_and_are_kept_in_order() {
    let place = Place::new("text");
    let known = {
        let cache = cache_ahead(&place.cache, 60);
        cache.look(&place.file).unwrap()
    };
    let entry = |n: u64, text: &str| CacheEntry {
        stamp: FileStamp {
            inode: n,
            ..known.stamp
        },
        recorded: i64::MAX,
        digest: Digest::of(text),
        used: n > 50,
    };
    let mut state = CacheState::default();
    // In no order, and every third again.
    for n in (0..100).rev() {
        state.add(entry(n * 7 % 100, "first"));
    }
    for n in (0..100).step_by(3) {
        state.add(entry(n, "second"));
    }
    assert!(state.added.len() <= APART);
    assert_eq!(state.kept.is_empty(), APART > 100);
    let mut found = |n: u64| {
        let found = state.entry((known.stamp.device, n), &place.cache, i64::MAX);
        found.map(|entry| (entry.digest, entry.used))
    };
    for n in 0..100 {
        let text = if n % 3 == 0 { "second" } else { "first" };
        assert_eq!(found(n), Some((Digest::of(text), n > 50)), "{n}");
    }
    assert_eq!(found(100), None);
    state.join();
    let inodes: Vec<u64> = state.kept.iter().map(|entry| entry.stamp.inode).collect();
    assert_eq!(inodes, (0..100).collect::<Vec<u64>>());
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
    assert_eq!(parsed(&place.cache).len(), 1);
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
