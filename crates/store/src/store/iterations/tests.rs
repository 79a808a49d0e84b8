//! Saved iterations: read back whole or not at all.

use super::*;
use crate::store::scan::files::Files;
use crate::store::scratch::{AttemptName, ScratchPool};
use serde_json::json;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn layout(&self) -> Layout {
        Layout::new(self.0.path())
    }

    /// An attempt of this number.
    fn scratch(&self, number: u64, is_folder: bool) -> Scratch {
        let files = Files::new(self.0.path(), self.0.path());
        let name = AttemptName {
            run: "RUN",
            stage: "write",
            batch: "one",
            number,
        };
        let pool = is_folder.then(ScratchPool::default);
        let (disk, layout) = (Disk::real(), self.layout());
        let none = &mut std::iter::empty();
        Scratch::create(&disk, &files, &layout, &name, pool.as_ref(), none).unwrap()
    }

    fn rounds(&self, fingerprint: &str) -> SavedIterations {
        let print = Digest::of(fingerprint);
        SavedIterations::new(&Disk::real(), &self.layout(), "write", "one", print)
    }

    fn kept(&self) -> Vec<String> {
        names(&self.layout().at(&layout::rounds("write")).join("one")).unwrap()
    }

    /// What was noted of the rounds that are there.
    fn notes(&self, fingerprint: &str) -> Vec<Value> {
        let read = self.rounds(fingerprint).read().unwrap();
        read.into_iter().map(|round| round.note).collect()
    }
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn put(scratch: &Scratch, file: &str, text: &str) {
    let mut sink = scratch.sink(&path(file)).unwrap();
    sink.write_all(text.as_bytes()).unwrap();
    sink.finish().unwrap();
}

/// Two rounds of an attempt: a draft of each, and a page that is written over.
fn two(place: &Place, is_folder: bool) -> Scratch {
    let scratch = place.scratch(1, is_folder);
    let mut rounds = place.rounds("facts");
    assert_eq!(rounds.read().unwrap(), []);
    for number in 1..=2 {
        put(
            &scratch,
            &format!("drafts/{number}.txt"),
            &format!("draft {number}"),
        );
        put(&scratch, "page.txt", &format!("page {number}"));
        assert!(rounds.keep(&scratch, number, json!(number)).unwrap());
    }
    scratch
}

#[test]
fn what_was_made_is_put_back_as_it_was() {
    for is_folder in [false, true] {
        let place = Place::new();
        let first = two(&place, is_folder);
        if is_folder {
            std::fs::create_dir_all(first.path().join("cache/empty")).unwrap();
            std::fs::write(first.path().join("tool"), "#!/bin/sh").unwrap();
            let rights = std::fs::Permissions::from_mode(0o750);
            std::fs::set_permissions(first.path().join("tool"), rights).unwrap();
        }
        put(&first, "drafts/3.txt", "draft 1");
        let mut rounds = place.rounds("facts");
        assert_eq!(rounds.read().unwrap().len(), 2);
        assert!(rounds.keep(&first, 3, json!("third")).unwrap());
        first.remove();

        let again = place.scratch(2, is_folder);
        let mut rounds = place.rounds("facts");
        let read = rounds.read().unwrap();
        let notes: Vec<&Value> = read.iter().map(|round| &round.note).collect();
        assert_eq!(notes, [&json!(1), &json!(2), &json!("third")]);
        rounds.restore(&read[2], &again).unwrap();
        for (file, text) in [
            ("drafts/1.txt", "draft 1"),
            ("drafts/2.txt", "draft 2"),
            ("drafts/3.txt", "draft 1"),
            ("page.txt", "page 2"),
        ] {
            let found = again.content(&path(file)).unwrap().unwrap();
            assert_eq!(found.digest, Digest::of(text), "{file}");
            assert_eq!(
                std::fs::read_to_string(again.at(&path(file))).unwrap(),
                text
            );
        }
        if is_folder {
            assert!(again.path().join("cache/empty").is_dir());
            let tool = again.path().join("tool").metadata().unwrap();
            assert_eq!(tool.permissions().mode() & PERMISSIONS, 0o750);
        }
        rounds.clear().unwrap();
        assert_eq!(place.kept(), Vec::<String>::new());
    }
}

#[test]
fn what_is_not_whole_is_not_there() {
    let hex = |text: &str| Digest::of(text).hex();
    #[expect(clippy::type_complexity)]
    let damage: [(&str, &dyn Fn(&Path)); 5] = [
        ("a file is missing", &|folder| {
            std::fs::remove_file(folder.join(hex("draft 1"))).unwrap();
        }),
        ("a file is another", &|folder| {
            std::fs::write(folder.join(hex("page 2")), "page 7").unwrap();
        }),
        ("a record is torn", &|folder| {
            let text = std::fs::read(folder.join("2.json")).unwrap();
            std::fs::write(folder.join("2.json"), &text[..text.len() / 2]).unwrap();
        }),
        ("a record follows another", &|folder| {
            let text = std::fs::read_to_string(folder.join("1.json")).unwrap();
            std::fs::write(folder.join("1.json"), format!("{text} ")).unwrap();
        }),
        ("the first is gone", &|folder| {
            std::fs::remove_file(folder.join("1.json")).unwrap();
        }),
    ];
    for (name, damage) in damage {
        let place = Place::new();
        two(&place, false);
        damage(&place.layout().at(&layout::rounds("write")).join("one"));
        assert_eq!(place.notes("facts"), Vec::<Value>::new(), "{name}");
        assert_eq!(place.kept(), Vec::<String>::new(), "{name}");
    }
    let place = Place::new();
    two(&place, false);
    assert_eq!(place.notes("facts").len(), 2);
    assert_eq!(place.notes("others"), Vec::<Value>::new());
    assert_eq!(place.kept(), Vec::<String>::new());
}

#[test]
fn a_round_with_a_link_is_not_kept_and_none_after_it() {
    let place = Place::new();
    let scratch = two(&place, true);
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink("page.txt", &link).unwrap();
    let mut rounds = place.rounds("facts");
    rounds.read().unwrap();
    assert!(!rounds.keep(&scratch, 3, json!(3)).unwrap());
    std::fs::remove_file(link).unwrap();
    assert!(!rounds.keep(&scratch, 4, json!(4)).unwrap());
    assert_eq!(place.notes("facts").len(), 2);
}

#[test]
fn what_nobody_needs_goes() {
    let place = Place::new();
    let (disk, layout) = (Disk::real(), place.layout());
    let kept = |stage: &str, batch: &str| {
        let scratch = place.scratch(1, false);
        let mut rounds = SavedIterations::new(&disk, &layout, stage, batch, Digest::of("facts"));
        assert!(rounds.keep(&scratch, 1, Value::Null).unwrap());
    };
    let left = || -> Vec<String> {
        let stages = names(&layout.own().join(layout::ROUNDS)).unwrap();
        let inside = |stage: String| {
            let batches = names(&layout.at(&layout::rounds(&stage))).unwrap();
            batches
                .into_iter()
                .map(move |batch| format!("{stage}/{batch}"))
        };
        stages.into_iter().flat_map(inside).collect()
    };
    for batch in ["a/b", "c", ""] {
        kept("write", batch);
    }
    kept("other", "");
    let long = safe_name("a/b");
    assert_eq!(
        left(),
        [
            "other/only".to_owned(),
            format!("write/{long}"),
            "write/c".to_owned(),
            "write/only".to_owned()
        ]
    );
    forget(&disk, &layout, "write", "").unwrap();
    remove_except(&disk, &layout, "write", ["a/b", "d"].into_iter()).unwrap();
    assert_eq!(left(), ["other/only".to_owned(), format!("write/{long}")]);
    remove_stages_except(&disk, &layout, ["other"].into_iter()).unwrap();
    assert_eq!(left(), ["other/only"]);
}
