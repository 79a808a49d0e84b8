//! `Live`: a workspace that is watched while others change it.

use crate::support::Project;
use milepost_core::base::clock::StillClock;
use milepost_core::model::event::{Event, EventType, Record};
use milepost_engine::ops::inspect::live::Live;
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::Journal;
use milepost_store::store::layout::Layout;
use milepost_store::store::lock::{Holder, Lock};
use std::sync::Arc;

fn greet(project: &Project, greeting: &str) {
    project.write(
        "milepost.toml",
        format!("name = \"names\"\n\n[params]\ngreeting = \"{greeting}\"\n"),
    );
    project.run_in_process();
}

#[test]
fn after_a_replaced_journal_only_new_records_are_reported() {
    let project = Project::names();
    greet(&project, "hello");
    let live = Live::open(&project.request()).unwrap();
    let before = live.changes(None).unwrap().at;

    let other = Project::names();
    for greeting in ["good day", "good night"] {
        greet(&other, greeting);
    }
    std::fs::remove_dir_all(project.at("workspace")).unwrap();
    std::fs::rename(other.at("workspace"), project.at("workspace")).unwrap();
    let replaced = live.changes(Some(&before)).unwrap();
    assert!(replaced.is_new);
    assert_eq!(
        (replaced.records.as_slice(), replaced.left_out),
        (&[][..], 0)
    );

    let begin = project.records().len();
    greet(&project, "good morning");
    let changes = live.changes(Some(&replaced.at)).unwrap();
    let expected = project.records().split_off(begin);
    let is_shown = |record: &&serde_json::Value| {
        record["kind"] != "barrier" && record["kind"] != "child_started"
    };
    let expected: Vec<Record> = expected
        .iter()
        .filter(is_shown)
        .map(|record| serde_json::from_value(record.clone()).unwrap())
        .collect();
    let left_out = expected.len().saturating_sub(40);
    assert_eq!(changes.left_out, left_out as u64);
    assert_eq!(changes.records, expected[left_out..]);
}

#[test]
fn records_after_one_that_does_not_follow_are_not_skipped() {
    let project = Project::names();
    greet(&project, "hello");
    let live = Live::open(&project.request()).unwrap();
    let clock = Arc::new(StillClock("2026-11-21T10:00:00Z".parse().unwrap()));
    let layout = Layout::new(project.at("workspace"));
    let mut journal = Journal::open(&Disk::real(), &layout, clock, "SESSION", "RUN")
        .unwrap()
        .journal;
    let event = Event::AttemptStarted {
        stage: "of no pipeline".to_owned(),
        batch: "a".to_owned(),
        attempt: 1,
    };
    journal
        .append(EventType::Invoke, "agent", event, "tried", Vec::new())
        .unwrap();
    drop(journal);
    // While a run writes, the workspace may be unreadable for a moment: ten readings may fail. After that, the error is reported.
    let found: Vec<bool> = (0..12).map(|_| live.changes(None).is_ok()).collect();
    assert_eq!(found, [[true; 10].as_slice(), &[false; 2]].concat());
}

#[test]
fn a_run_that_is_faster_than_the_page_is_followed_to_its_end() {
    const RECORDS: usize = 20_000;
    let project = Project::names();
    greet(&project, "hello");
    let live = Live::open(&project.request()).unwrap();
    let before = live.changes(None).unwrap().at;
    let now = "2026-11-21T10:00:00Z".parse().unwrap();
    let (disk, layout) = (Disk::real(), Layout::new(project.at("workspace")));
    let holder = Holder::this("RUN", now, "milepost run");
    let (lock, _) = Lock::take(&disk, &layout.lock(), &holder).unwrap();
    let clock = Arc::new(StillClock(now));
    let journal = Journal::open(&disk, &layout, clock, "SESSION", "RUN");
    let mut journal = journal.unwrap().journal;
    let summary = "x".repeat(1000);
    for _ in 0..RECORDS {
        let event = Event::RunStarted {
            command: "milepost run".to_owned(),
            version: "1".to_owned(),
        };
        journal
            .append(EventType::Invoke, "planner", event, &*summary, Vec::new())
            .unwrap();
    }
    drop(journal);

    // 20 MB of records take longer than is allowed at once while the run is in progress.
    let changes = live.changes(Some(&before)).unwrap();
    assert!(changes.running && changes.is_new);
    let seen = changes.left_out + changes.records.len() as u64;
    assert!(seen < RECORDS as u64, "{seen}");
    assert_eq!(live.as_of(), Some(now));

    drop(lock);
    let changes = live.changes(Some(&before)).unwrap();
    let seen = changes.left_out + changes.records.len() as u64;
    assert_eq!(
        (seen, live.as_of(), changes.running),
        (RECORDS as u64, None, false)
    );
}
