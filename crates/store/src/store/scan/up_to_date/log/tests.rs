//! Notes say the same, whether the events were held in memory or written to a file.

#![allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]

use super::super::log::WrittenFile;
use super::super::observations::Observations;
use crate::store::disk::Disk;
use crate::store::gc;
use crate::store::layout::Layout;
use crate::store::scan::stamp::FileStamp;
use crate::store::scan::statcache::HashedFile;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, Root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FILES: [&str; 10] = [
    "a",
    "a/b",
    "a/b.c",
    "a/b/c",
    "a b/c",
    "inputs/1.txt",
    "inputs/10.txt",
    "project:inputs/1.txt",
    ".milepost/journal/000001.jsonl",
    "stage_1_complete.json",
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

fn stamp(number: u64) -> FileStamp {
    FileStamp {
        device: 1 + number % 2,
        inode: number,
        size: 3,
        mtime: 4,
        ctime: 5,
    }
}

fn seen(content: u64, number: u64) -> HashedFile {
    HashedFile {
        digest: Digest::of(content.to_string()),
        stamp: stamp(number),
        settled: !number.is_multiple_of(3),
    }
}

/// Observes at random, and returns the notes that are kept; none if there are none.
fn kept(asked: &Observations, seed: u64, folder: &Path) -> Option<Vec<u8>> {
    let mut random = Random(seed);
    let mut contents = [0; FILES.len()];
    let files = FILES.map(|name| name.parse::<FilePath>().unwrap());
    let changes_alone = seed.is_multiple_of(9);
    for _ in 0..random.below(80) {
        let at = random.below(FILES.len() as u64) as usize;
        let (file, number) = (&files[at], random.below(30));
        let is_own = file.root == Root::Workspace;
        match random.below(10) {
            0 if is_own && contents[at] > 0 => {
                contents[at] = 0;
                asked.replaced(&file.path, None, true);
            }
            1 | 2 if is_own => {
                contents[at] += 1;
                asked.replaced(&file.path, Some(Digest::of(contents[at].to_string())), true);
            }
            3 if is_own => asked.prove(&file.path, stamp(number)),
            4 if changes_alone => contents[at] += 1,
            _ if contents[at] == 0 => asked.file(file, None),
            _ => asked.file(file, Some(seen(contents[at], number))),
        }
    }
    if !seed.is_multiple_of(4) {
        let look = |file: &FilePath, written: WrittenFile| {
            let number = Random(seed + file.to_string().len() as u64).below(30);
            let is_changed = number == 0 && seed.is_multiple_of(7);
            let stamp = written.proof.filter(|_| number > 10);
            let stamp = stamp.unwrap_or(self::stamp(number));
            HashedFile {
                digest: if is_changed {
                    Digest::of("changed")
                } else {
                    written.digest
                },
                stamp,
                settled: written.proof == Some(stamp),
            }
        };
        asked.look_again(|file, written| Some(look(file, written)));
        asked.file(&files[8], Some(seen(1, 1)));
        asked.file(&files[9], None);
    }
    asked.list(Root::Workspace, "inputs/*.txt", &[], None);
    asked.folder(&files[0], seed.is_multiple_of(2));
    let path = folder.join(format!("glance {seed}"));
    let key = Digest::of("the key");
    let _ = asked.keep(&Disk::real(), &path, key, b"told");
    fs::read(path).ok()
}

/// Notes of random observations, one after the other.
fn notes(asked: impl Fn(&Path) -> Observations) -> (usize, Digest) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    let mut count = 0;
    for seed in 0..300 {
        let notes = kept(&asked(folder.path()), seed, folder.path());
        count += usize::from(notes.is_some());
        bytes.extend(notes.unwrap_or(vec![0]));
    }
    (count, Digest::of(&bytes))
}

fn spilling(folder: &Path) -> Observations {
    Observations::noting().spilling(&Disk::real(), &folder.join(".events.tmp"))
}

#[test]
fn notes_have_the_same_bytes_wherever_the_events_were() {
    // The bytes are those of the first version that wrote this format.
    let expected = "132 sha256:044f8c0c8d62bee4ae70839033af07ffec1fa259ea2cb61eacd8106126046494";
    let (count, digest) = notes(|_| Observations::noting());
    assert_eq!(format!("{count} {digest}"), expected);
    assert_eq!(notes(spilling), (count, digest));
}

/// Observes more files than are held in memory.
fn many(asked: &Observations) {
    for number in 0..(super::IN_MEMORY / 40) as u64 {
        let file = format!("inputs/{number}.txt").parse().unwrap();
        asked.file(&file, Some(seen(1, number)));
    }
}

#[test]
fn the_file_of_events_has_no_name_and_replaces_what_a_killed_run_left() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new(folder.path());
    fs::create_dir(layout.own()).unwrap();
    fs::write(layout.up_to_date_events(), "left").unwrap();
    let left = gc::find(&layout, &BTreeSet::new(), None).unwrap();
    let paths: Vec<_> = left.iter().map(|one| layout.at(&one.path)).collect();
    assert_eq!(paths, [layout.up_to_date_events()]);

    let disk = Disk::real();
    let asked = Observations::noting().spilling(&disk, &layout.up_to_date_events());
    many(&asked);
    assert!(disk.count() > 3, "runs were written");
    assert_eq!(fs::read_dir(layout.own()).unwrap().count(), 0);
    let key = Digest::of("the key");
    assert!(
        asked
            .keep(&disk, &layout.up_to_date_notes(), key, b"")
            .unwrap()
    );
}

#[test]
fn a_disk_that_refuses_ends_the_notes() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".events.tmp")).unwrap();
    let asked = spilling(folder.path());
    many(&asked);
    assert!(!asked.is_on());
    let (notes, key) = (folder.path().join("glance"), Digest::of("the key"));
    assert!(!asked.keep(&Disk::real(), &notes, key, b"").unwrap());
    assert!(!notes.exists());
}
