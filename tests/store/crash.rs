//! Killed at every operation: whoever reads afterwards sees the old or the new, never anything else.

use super::sample::{complete, made, path, stage};
use super::{Place, place};
use milepost_core::base::clock::StillClock;
use milepost_core::base::digest::Digest;
use milepost_core::model::event::{Event, EventType, Publish};
use milepost_core::model::state::StageState;
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::{Journal, read_since_seal};
use milepost_store::store::layout::Layout;
use milepost_store::store::manifest::{self, kept};
use milepost_store::store::publish::{RecoveredFile, rename_into_place, settle};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;

const TASK: &str = "MILEPOST_TEST_TASK";
const FOLDER: &str = "MILEPOST_TEST_FOLDER";
const STOP: &str = "MILEPOST_TEST_STOP";

/// The part that a killed process does.
#[test]
#[ignore = "a process that other tests start"]
fn child() {
    let task = std::env::var(TASK).unwrap();
    let layout = Layout::new(std::env::var(FOLDER).unwrap());
    let disk = Disk::from_setting(std::env::var(STOP).ok().as_deref());
    match task.as_str() {
        "atomic" => disk.write_atomic(&layout.identity(), b"new bytes").unwrap(),
        "manifest" => {
            manifest::write(&disk, &layout, "classify", &changed()).unwrap();
        }
        "journal" => {
            let clock = Arc::new(StillClock("2026-11-21T10:00:00Z".parse().unwrap()));
            let mut journal = Journal::open(&disk, &layout, clock, "S", "R")
                .unwrap()
                .journal;
            for at in 0..3_u32 {
                append(&mut journal, at);
            }
            journal.flush().unwrap();
            journal
                .seal(BTreeMap::new(), Vec::new(), BTreeMap::new())
                .unwrap();
            append(&mut journal, 3);
            journal.flush().unwrap();
        }
        "publish" => rename_into_place(&disk, &layout, &published(), &mut |_| {}).unwrap(),
        _ => panic!("{task}"),
    }
}

fn append(journal: &mut Journal, at: u32) {
    let event = Event::StageForgotten {
        stage: at.to_string(),
    };
    journal
        .append(EventType::Revision, "milepost", event, "x", Vec::new())
        .unwrap();
}

/// Does the task once for every operation in it, killed there, in a workspace made by `make`; then `check` looks at it.
fn killed_everywhere(task: &str, make: impl Fn(&Layout), check: impl Fn(&Layout, u64)) {
    let mut ends = 0;
    for at in 1.. {
        let mut done = true;
        for setting in [format!("{at},unflushed"), format!("{at}:half,unflushed")] {
            let place: Place = place();
            make(&place.layout);
            let ended = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "--ignored", "store::crash::child"])
                .env(TASK, task)
                .env(FOLDER, place.layout.root())
                .env(STOP, &setting)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            done &= ended.success();
            ends += u64::from(!ended.success());
            check(&place.layout, at);
        }
        if done {
            assert!(ends > 2, "nothing was killed");
            return;
        }
    }
}

#[test]
fn a_file_is_old_or_new() {
    killed_everywhere(
        "atomic",
        |layout| {
            fs::create_dir(layout.own()).unwrap();
            fs::write(layout.identity(), "old bytes").unwrap();
        },
        |layout, at| {
            let text = fs::read_to_string(layout.identity()).unwrap();
            assert_eq!(text, if at <= 4 { "old bytes" } else { "new bytes" });
            Disk::real().write_atomic(&layout.identity(), b"x").unwrap();
            assert_eq!(fs::read_dir(layout.own()).unwrap().count(), 1);
        },
    );
}

/// Batches with so many files each.
fn large(batches: &[(u32, u32)]) -> StageState {
    let mut state = stage([]);
    state.facts = stage([1]).facts;
    for (number, files) in batches {
        let key = format!("batch_{number}");
        let outputs = (0..*files).map(|n| made(&format!("{key}/{n}.json"), &key));
        let batch = complete(&key, outputs.collect());
        state.batches.insert(key, batch);
    }
    state
}

/// A full page, and one more.
fn old() -> StageState {
    large(&[(2, 500), (4, 500), (6, 50), (8, 50)])
}

/// One batch more on the full page, so that it is split and the page after it moves; one changed; one gone.
fn changed() -> StageState {
    large(&[(2, 500), (4, 500), (5, 50), (6, 40)])
}

#[test]
fn every_batch_of_a_manifest_is_as_the_old_or_the_new_state_has_it() {
    let (old, new) = (kept(&old()), kept(&changed()));
    killed_everywhere(
        "manifest",
        |layout| {
            manifest::write(&Disk::real(), layout, "classify", &old).unwrap();
        },
        |layout, at| {
            let found = manifest::read(layout, "classify").unwrap();
            for key in old.batches.keys().chain(new.batches.keys()) {
                let found = found.batches.get(key);
                let known = [old.batches.get(key), new.batches.get(key)];
                assert!(known.contains(&found), "{key} at {at}");
            }
            let written = manifest::write(&Disk::real(), layout, "classify", &new).unwrap();
            assert_eq!(manifest::read(layout, "classify").unwrap(), new);
            let again = manifest::digest(layout, "classify").unwrap();
            assert_eq!(again, Some(written.digest));
        },
    );
}

#[test]
fn a_journal_continues_after_its_last_whole_line() {
    killed_everywhere(
        "journal",
        |_| {},
        |layout, at| {
            let clock = Arc::new(StillClock("2026-11-21T10:00:00Z".parse().unwrap()));
            let known = read_since_seal(layout).unwrap();
            let opened = Journal::open(&Disk::real(), layout, clock, "S", "R2").unwrap();
            assert_eq!(opened.records, known.0, "at {at}");
            assert_eq!(opened.cut.map_or(0, |cut| cut.bytes), known.1.torn);
            let mut journal = opened.journal;
            append(&mut journal, 9);
            let mut stages = Vec::new();
            milepost_store::store::journal::read_all(layout, &mut |_, record| {
                if let Event::StageForgotten { stage } = record.event {
                    stages.push(stage);
                }
            })
            .unwrap();
            assert_eq!(stages.pop().as_deref(), Some("9"));
            let all = ["0", "1", "2", "3"];
            assert_eq!(stages, all[..stages.len()]);
        },
    );
}

fn published() -> Vec<Publish> {
    let publish = |name: &str, old: Option<&str>, quarantine: Option<&str>| Publish {
        scratch: path(&format!(".milepost/scratch/R/{name}")),
        path: path(&format!("intermediate/{name}/x.json")),
        old: old.map(Digest::of),
        new: Digest::of(format!("new {name}")),
        quarantine: quarantine.map(path),
        marker: false,
    };
    vec![
        publish("a", None, None),
        publish("b", Some("old b"), None),
        publish("c", Some("altered c"), Some(".milepost/quarantine/Q/c")),
    ]
}

#[test]
fn what_was_published_is_finished() {
    killed_everywhere(
        "publish",
        |layout| {
            for (file, text) in [
                (".milepost/scratch/R/a", "new a"),
                (".milepost/scratch/R/b", "new b"),
                (".milepost/scratch/R/c", "new c"),
                ("intermediate/b/x.json", "old b"),
                ("intermediate/c/x.json", "altered c"),
            ] {
                let file = layout.root().join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
        },
        |layout, _| {
            let settled = settle(&Disk::real(), layout, &published()).unwrap();
            let finished = |settled: &RecoveredFile| {
                matches!(settled, RecoveredFile::Done | RecoveredFile::Renamed)
            };
            assert!(settled.iter().all(finished), "{settled:?}");
            let again = settle(&Disk::real(), layout, &published()).unwrap();
            assert_eq!(again, [RecoveredFile::Done; 3]);
            let kept = layout.root().join(".milepost/quarantine/Q/c");
            assert_eq!(fs::read_to_string(kept).unwrap(), "altered c");
        },
    );
}
