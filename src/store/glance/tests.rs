//! What a glance sees: every change of what was asked, and nothing else.

#![allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]

use super::{Asked, again};
use crate::base::clock::StillClock;
use crate::base::digest::Digest;
use crate::base::glob::Glob;
use crate::base::path::{FilePath, RelPath, Root};
use crate::store::disk::Disk;
use crate::store::files::Files;
use crate::store::statcache::StatCache;
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::path::PathBuf;

struct Place {
    folder: tempfile::TempDir,
}

const KEY: &str = "the key";

impl Place {
    /// `inputs/a.txt`, `inputs/b.txt` and `project/rule.toml`.
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/inputs")).unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        let place = Place { folder };
        place.write("work/inputs/a.txt", "a");
        place.write("work/inputs/b.txt", "b");
        place.write("project/rule.toml", "rule");
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn files(&self) -> Files {
        Files::new(&self.at("project"), &self.at("work"))
    }

    /// Asks, so many seconds ahead of the machine's clock, and keeps the notes.
    fn note(&self, ahead: i64) {
        let (files, asked) = (self.files(), Asked::noting());
        let now = Timestamp::now() + SignedDuration::from_secs(ahead);
        let cache = StatCache::with_clock(&self.at("cache"), Box::new(StillClock(now)));
        for name in [
            "inputs/a.txt",
            "inputs/b.txt",
            "project:rule.toml",
            "outputs/none.txt",
        ] {
            let file: FilePath = name.parse().unwrap();
            let seen = cache.look(&files.resolve(&file).unwrap()).ok();
            asked.file(&file, seen);
        }
        let before = cache.now();
        let glob = Glob::parse("inputs/*.txt").unwrap();
        let folder = files.stamp_of_folder(&glob, Root::Workspace).unwrap();
        let settled = Some(folder).filter(|stamp| stamp.was_settled(before));
        let found = files.list(&glob, Root::Workspace).unwrap();
        asked.list(Root::Workspace, "inputs/*.txt", &found, settled);
        asked.folder(&"inputs".parse().unwrap(), true);
        let inputs = RelPath::parse("inputs").unwrap();
        asked.names(&inputs, &files.names(&inputs).unwrap());
        let key = Digest::of(KEY);
        asked
            .keep(&Disk::real(), &self.at("glance"), key, b"told")
            .unwrap();
    }

    fn again(&self) -> Option<Vec<u8>> {
        self.again_at(Digest::of(KEY), Timestamp::now())
    }

    fn again_at(&self, key: Digest, now: Timestamp) -> Option<Vec<u8>> {
        let now = i64::try_from(now.as_nanosecond()).unwrap();
        again(&self.at("glance"), key, &self.files(), now)
    }
}

#[test]
fn the_same_again_tells_what_was_kept() {
    let place = Place::new();
    place.note(10);
    assert_eq!(place.again(), Some(b"told".to_vec()));
    assert_eq!(place.again_at(Digest::of("other"), Timestamp::now()), None);
}

#[test]
fn notes_that_were_kept_before_the_clock_was_set_back_are_none() {
    let place = Place::new();
    place.note(10);
    let earlier = Timestamp::now() - SignedDuration::from_secs(60);
    assert_eq!(place.again_at(Digest::of(KEY), earlier), None);
    assert!(place.again().is_some());
}

#[test]
fn what_is_too_young_is_not_kept() {
    let place = Place::new();
    place.note(0);
    assert_eq!(place.again(), None);
    assert!(!place.at("glance").exists());
}

#[test]
fn every_change_of_what_was_asked_is_seen() {
    type Change = fn(&Place);
    let changes: [(&str, Change); 9] = [
        ("content", |place| place.write("work/inputs/a.txt", "A")),
        ("size", |place| place.write("work/inputs/a.txt", "longer")),
        ("the project's file", |place| {
            place.write("project/rule.toml", "ruler");
        }),
        ("one is gone", |place| {
            fs::remove_file(place.at("work/inputs/b.txt")).unwrap();
        }),
        ("one is new", |place| place.write("work/inputs/c.txt", "c")),
        ("one that was absent", |place| {
            fs::create_dir(place.at("work/outputs")).unwrap();
            place.write("work/outputs/none.txt", "");
        }),
        ("another under the name", |place| {
            place.write("other", "a");
            fs::rename(place.at("other"), place.at("work/inputs/a.txt")).unwrap();
        }),
        ("a link to the same folder", |place| {
            fs::rename(place.at("work/inputs"), place.at("away")).unwrap();
            std::os::unix::fs::symlink(place.at("away"), place.at("work/inputs")).unwrap();
        }),
        ("a link to the same file", |place| {
            fs::rename(place.at("work/inputs/a.txt"), place.at("away")).unwrap();
            std::os::unix::fs::symlink(place.at("away"), place.at("work/inputs/a.txt")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let place = Place::new();
        place.note(10);
        assert!(place.again().is_some(), "{name}");
        change(&place);
        assert_eq!(place.again(), None, "{name}");
    }
}

#[test]
fn a_change_beside_what_was_asked_is_not() {
    let place = Place::new();
    place.note(10);
    place.write("work/other.txt", "");
    place.write("project/other.toml", "");
    assert!(place.again().is_some());
}

#[test]
fn torn_notes_are_none() {
    let place = Place::new();
    place.note(10);
    let whole = fs::read(place.at("glance")).unwrap();
    for cut in 0..whole.len() {
        fs::write(place.at("glance"), &whole[..cut]).unwrap();
        assert_eq!(place.again(), None, "{cut} bytes");
    }
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(place.at("glance"), &flipped).unwrap();
        assert_eq!(place.again(), None, "byte {at}");
    }
}

#[test]
fn an_answer_in_two_ways_ends_the_notes() {
    for (text, kept) in [("a", true), ("b", false)] {
        let place = Place::new();
        let (files, asked) = (place.files(), Asked::noting());
        let file: FilePath = "inputs/a.txt".parse().unwrap();
        let now = Timestamp::now() + SignedDuration::from_secs(10);
        let cache = StatCache::with_clock(&place.at("cache"), Box::new(StillClock(now)));
        let path = files.resolve(&file).unwrap();
        asked.file(&file, cache.look(&path).ok());
        // Another inode, so that what is known of the first is not taken for it.
        place.write("work/inputs/other", text);
        fs::rename(place.at("work/inputs/other"), &path).unwrap();
        asked.file(&file, cache.look(&path).ok());
        let key = Digest::of(KEY);
        asked
            .keep(&Disk::real(), &place.at("glance"), key, b"told")
            .unwrap();
        assert_eq!(place.again().is_some(), kept, "{text}");
    }
}
