//! An up-to-date check finds every change of what was observed, and nothing else.

#![allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]

use super::{Candidates, NotedPages, Observations, Recheck, again};
use crate::store::disk::Disk;
use crate::store::scan::files::Files;
use crate::store::scan::statcache::StatCache;
use jiff::{SignedDuration, Timestamp};
use milepost_core::base::clock::StillClock;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, RelPath, Root};
use std::fs;
use std::path::PathBuf;

struct PathParts {
    folder: tempfile::TempDir,
}

const KEY: &str = "the key";

impl PathParts {
    /// `inputs/a.txt`, `inputs/b.txt` and `project/rule.toml`.
    fn new() -> PathParts {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/inputs")).unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        let place = PathParts { folder };
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
        let asked = Observations::noting();
        self.ask(&asked, ahead);
        let key = Digest::of(KEY);
        let notes = self.at("glance");
        assert!(asked.keep(&Disk::real(), &notes, key, b"told").unwrap());
    }

    fn ask(&self, asked: &Observations, ahead: i64) {
        let files = self.files();
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
        let found = files.list(&glob, Root::Workspace).unwrap().files;
        asked.list(Root::Workspace, "inputs/*.txt", &found, settled);
        asked.folder(&"inputs".parse().unwrap(), true);
        let inputs = RelPath::parse("inputs").unwrap();
        asked.names(&inputs, &files.names(&inputs).unwrap());
        cache.save(&Disk::real()).unwrap();
    }

    /// The payload of the notes, if nothing changed.
    fn again(&self) -> Option<Vec<u8>> {
        self.again_at(Digest::of(KEY), Timestamp::now())
    }

    fn again_at(&self, key: Digest, now: Timestamp) -> Option<Vec<u8>> {
        let recheck = self.recheck(key, now)?;
        recheck.differing.is_empty().then_some(recheck.payload)
    }

    fn recheck(&self, key: Digest, now: Timestamp) -> Option<Recheck> {
        self.recheck_among(key, now, None)
    }

    fn recheck_among(
        &self,
        key: Digest,
        now: Timestamp,
        among: Option<&[&str]>,
    ) -> Option<Recheck> {
        let paths: Option<Vec<RelPath>> =
            among.map(|paths| paths.iter().map(|path| path.parse().unwrap()).collect());
        let among = paths.map(|paths| Candidates::new(&paths));
        let cache = StatCache::with_clock(&self.at("cache"), Box::new(StillClock(now)));
        let (notes, files) = (self.at("glance"), self.files());
        let recheck = again(&notes, key, &files, &cache, among.as_ref());
        cache.save(&Disk::real()).unwrap();
        recheck
    }

    /// The files that differ, if only these may.
    fn differ_among(&self, among: &[&str]) -> Option<Vec<String>> {
        let now = Timestamp::now() + SignedDuration::from_secs(60);
        let recheck = self.recheck_among(Digest::of(KEY), now, Some(among))?;
        Some(recheck.differing.iter().map(ToString::to_string).collect())
    }

    /// Checks with a clock that is a minute ahead. Returns the files that differ, the touched files, and whether the notes can be renewed.
    fn names(&self) -> Option<(Vec<String>, Vec<String>, bool)> {
        let now = Timestamp::now() + SignedDuration::from_secs(60);
        let recheck = self.recheck(Digest::of(KEY), now)?;
        let texts = |files: &[FilePath]| files.iter().map(ToString::to_string).collect();
        let named = (texts(&recheck.differing), texts(&recheck.touched));
        if recheck.can_renew() {
            recheck.renew(&Disk::real(), &self.at("glance")).unwrap();
        }
        Some((named.0, named.1, recheck.can_renew()))
    }

    fn touch(&self, path: &str) {
        let file = fs::File::options().write(true).open(self.at(path));
        let before = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        file.unwrap().set_modified(before).unwrap();
    }
}

#[test]
fn the_same_again_tells_what_was_kept() {
    let place = PathParts::new();
    place.note(10);
    assert_eq!(place.again(), Some(b"told".to_vec()));
    assert_eq!(place.again_at(Digest::of("other"), Timestamp::now()), None);
}

#[test]
fn notes_that_were_kept_before_the_clock_was_set_back_are_none() {
    let place = PathParts::new();
    place.note(10);
    let earlier = Timestamp::now() - SignedDuration::from_secs(60);
    assert_eq!(place.again_at(Digest::of(KEY), earlier), None);
    assert!(place.again().is_some());
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_too_young_is_read_again_and_then_believed() {
    let place = PathParts::new();
    place.note(0);
    let all = texts(&["inputs/a.txt", "inputs/b.txt", "project:rule.toml"]);
    assert_eq!(place.names(), Some((vec![], all, true)));
    assert_eq!(place.names(), Some((vec![], vec![], false)));
    // A change that only a reader sees.
    let place = PathParts::new();
    place.note(0);
    place.write("work/inputs/a.txt", "A");
    let (differing, ..) = place.names().unwrap();
    assert_eq!(differing, texts(&["inputs/a.txt"]));
}

#[test]
fn what_was_only_touched_is_the_same_and_read_once() {
    let place = PathParts::new();
    place.note(10);
    place.touch("work/inputs/a.txt");
    let touched = texts(&["inputs/a.txt"]);
    assert_eq!(place.names(), Some((vec![], touched, true)));
    assert_eq!(place.names(), Some((vec![], vec![], false)));
    place.touch("work/inputs/a.txt");
    place.write("work/inputs/b.txt", "B");
    let (differing, touched) = (texts(&["inputs/b.txt"]), texts(&["inputs/a.txt"]));
    assert_eq!(place.names(), Some((differing, touched, true)));
}

#[test]
fn notes_go_on_from_those_before() {
    let place = PathParts::new();
    place.note(10);
    place.write("work/inputs/a.txt", "other");
    place.write("work/outputs.txt", "made");
    let (files, a) = (place.files(), "inputs/a.txt".parse::<FilePath>().unwrap());
    assert_eq!(place.names().unwrap().0, texts(&["inputs/a.txt"]));

    let asked = Observations::since([a.clone()].into(), NotedPages::new());
    let now = Timestamp::now() + SignedDuration::from_secs(60);
    let cache = StatCache::with_clock(&place.at("cache"), Box::new(StillClock(now)));
    asked.file(&a, cache.look(&files.resolve(&a).unwrap()).ok());
    let made = RelPath::parse("outputs.txt").unwrap();
    asked.file(&FilePath::workspace(made.clone()), None);
    let before = asked.differing().unwrap();
    assert!(before.has("inputs/a.txt") && !before.has("outputs.txt") && !before.wrote());
    asked.replaced(&made, Some(Digest::of("made")), false);
    let after = asked.differing().unwrap();
    assert!(after.has("inputs/a.txt") && after.has("outputs.txt") && after.wrote());
    asked.look_again(|file, written| {
        assert_eq!(written.digest, Digest::of("made"));
        cache.look(&files.resolve(file).unwrap()).ok()
    });
    let key = Digest::of(KEY);
    asked
        .keep(&Disk::real(), &place.at("glance"), key, b"more")
        .unwrap();
    assert_eq!(place.names(), Some((vec![], vec![], false)));
    assert_eq!(place.again_at(key, now), Some(b"more".to_vec()));
    let changes = [
        ("work/inputs/b.txt", "inputs/b.txt"),
        ("work/outputs.txt", "outputs.txt"),
        ("project/rule.toml", "project:rule.toml"),
    ];
    for (at, name) in changes {
        place.write(at, "changed");
        assert!(place.names().unwrap().0.contains(&name.to_owned()), "{at}");
    }
    place.write("work/inputs/c.txt", "one more in the list");
    assert_eq!(place.names(), None);
}

#[test]
fn every_change_of_what_was_asked_is_seen() {
    type Change = fn(&PathParts);
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
        let place = PathParts::new();
        place.note(10);
        assert!(place.again().is_some(), "{name}");
        change(&place);
        assert_eq!(place.again(), None, "{name}");
    }
}

#[test]
fn among_candidates_only_they_and_the_project_are_looked_at() {
    type Change = fn(&PathParts);
    let (a, b) = ("inputs/a.txt", "inputs/b.txt");
    #[expect(clippy::type_complexity)]
    let changes: [(&str, &[&str], Change, Option<&[&str]>); 14] = [
        ("nothing", &[a], |_| {}, Some(&[])),
        (
            "content",
            &[a],
            |place| place.write("work/inputs/a.txt", "A"),
            Some(&[a]),
        ),
        (
            "another",
            &[b],
            |place| place.write("work/inputs/a.txt", "A"),
            Some(&[]),
        ),
        (
            "touched",
            &[a],
            |place| place.touch("work/inputs/a.txt"),
            Some(&[]),
        ),
        (
            "both",
            &[b, a],
            |place| {
                place.write("work/inputs/a.txt", "A");
                place.write("work/inputs/b.txt", "B");
            },
            Some(&[a, b]),
        ),
        (
            "another under the name",
            &["other", a],
            |place| {
                place.write("work/other", "A");
                fs::rename(place.at("work/other"), place.at("work/inputs/a.txt")).unwrap();
            },
            Some(&[a]),
        ),
        (
            "the project's file",
            &[],
            |place| place.write("project/rule.toml", "ruler"),
            Some(&["project:rule.toml"]),
        ),
        (
            "one is gone",
            &[b],
            |place| fs::remove_file(place.at("work/inputs/b.txt")).unwrap(),
            None,
        ),
        (
            "one is new",
            &["inputs/c.txt"],
            |place| place.write("work/inputs/c.txt", "c"),
            None,
        ),
        (
            "one that nothing reads",
            &["other.txt"],
            |place| place.write("work/other.txt", ""),
            Some(&[]),
        ),
        (
            "one that came and went",
            &["inputs/.a.swp"],
            |_| {},
            Some(&[]),
        ),
        (
            "one that was absent",
            &["outputs/none.txt"],
            |place| {
                fs::create_dir(place.at("work/outputs")).unwrap();
                place.write("work/outputs/none.txt", "");
            },
            Some(&["outputs/none.txt"]),
        ),
        (
            "its folder is new",
            &["outputs"],
            |place| fs::create_dir(place.at("work/outputs")).unwrap(),
            None,
        ),
        (
            "its folder is gone",
            &["inputs"],
            |place| fs::rename(place.at("work/inputs"), place.at("away")).unwrap(),
            None,
        ),
    ];
    for (name, among, change, differing) in changes {
        let place = PathParts::new();
        place.note(10);
        change(&place);
        assert_eq!(place.differ_among(among), differing.map(texts), "{name}");
    }
}

#[test]
fn a_run_agrees_with_the_notes_it_continues_unless_something_else_changed() {
    type Change = fn(&PathParts);
    let changes: [(&str, Change, bool); 6] = [
        (
            "the file that differs",
            |place| place.write("work/inputs/a.txt", "A"),
            true,
        ),
        (
            "another",
            |place| place.write("work/inputs/b.txt", "other"),
            false,
        ),
        (
            "one of the project",
            |place| place.write("project/rule.toml", "ruler"),
            false,
        ),
        (
            "one is gone",
            |place| fs::remove_file(place.at("work/inputs/b.txt")).unwrap(),
            false,
        ),
        (
            "one that was absent",
            |place| {
                fs::create_dir(place.at("work/outputs")).unwrap();
                place.write("work/outputs/none.txt", "");
            },
            false,
        ),
        (
            "one more in a list",
            |place| place.write("work/inputs/c.txt", "c"),
            false,
        ),
    ];
    let (key, a) = (Digest::of(KEY), "inputs/a.txt".parse::<FilePath>().unwrap());
    for (name, change, agrees) in changes {
        let place = PathParts::new();
        place.note(10);
        change(&place);
        let continued = Observations::since([a.clone()].into(), NotedPages::new());
        place.ask(&continued, 10);
        assert_eq!(
            continued.agree_with(&place.at("glance"), key),
            agrees,
            "{name}"
        );
        // A run that continues nothing looked at everything.
        let anew = Observations::noting();
        place.ask(&anew, 10);
        assert!(anew.agree_with(&place.at("glance"), key), "{name}");
    }
}

#[test]
fn a_change_beside_what_was_asked_is_not() {
    let place = PathParts::new();
    place.note(10);
    place.write("work/other.txt", "");
    place.write("project/other.toml", "");
    assert!(place.again().is_some());
}

#[test]
fn torn_notes_are_none() {
    let place = PathParts::new();
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
        let place = PathParts::new();
        let (files, asked) = (place.files(), Observations::noting());
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
