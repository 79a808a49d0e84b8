//! `gc` joins the small segments that an earlier version of Milepost wrote. No record is lost, wherever it is stopped and beside readers.

use super::project::{assert_same, operations};
use super::sweep::{at_each, stops};
use crate::support::{Files, Project};
use milepost_core::base::digest::Digest;
use milepost_core::model::event::{Event, EventType, Record};
use milepost_engine::ops::project::lock::lock_and_read;
use milepost_engine::ops::project::{Request, open};
use milepost_engine::run::record::recorder::Recorder;
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::{self, Cursor, Position};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const FOLDER: &str = "workspace/.milepost/journal";
const GC: &[&str] = &["gc", "--yes"];

/// A complete workspace whose journal has so many seals, and a segment for each, as an earlier version wrote it.
fn divided(seals: usize) -> Project {
    let project = Project::small();
    project.complete(&["run"]);
    seal(&project, seals);
    divide(&project);
    // The next run writes the head of this journal.
    fs::remove_file(project.at("workspace/.milepost/journal-head.json")).unwrap();
    project.complete(&["run", "--force"]);
    project.assert_verified();
    project
}

/// Seals the journal so many times.
fn seal(project: &Project, seals: usize) {
    let request = Request {
        disk: Disk::from_setting(Some("unflushed")),
        ..Request::new(project.path().to_owned(), BTreeMap::new())
    };
    let mut opened = open(&request).unwrap();
    let held = lock_and_read(&mut opened, "test").unwrap();
    let mut recorder = Recorder::new(opened.context(), held.state, held.journal, "test");
    for _ in 0..seals {
        let barrier = Event::Barrier;
        recorder
            .record(EventType::Invoke, "test", barrier, "")
            .unwrap();
        recorder.seal().unwrap();
    }
}

/// Begins a segment with each seal.
fn divide(project: &Project) {
    let text: String = segments(project).into_values().collect();
    let (mut segments, mut prev) = (vec![String::new()], Value::Null);
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["kind"] == "sealed" {
            record["data"]["segment"] = segments.len().into();
            segments.push(String::new());
        }
        record["prev"] = prev;
        let line = record.to_string();
        prev = serde_json::to_value(Digest::of(&line)).unwrap();
        let last = segments.last_mut().unwrap();
        last.push_str(&line);
        last.push('\n');
    }
    for (number, text) in (1..).zip(segments) {
        project.write(&format!("{FOLDER}/{number:06}.jsonl"), text);
    }
}

/// Returns the files of the journal.
fn segments(project: &Project) -> BTreeMap<String, String> {
    let names = project.list(".milepost/journal").into_iter();
    names
        .map(|name| {
            let text = project.read(&format!("{FOLDER}/{name}"));
            (name, text)
        })
        .collect()
}

/// Returns a text with `N` for each number.
fn numbers_left_out(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if is_number { "N" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn small_segments_are_joined_byte_by_byte() {
    let project = divided(200);
    let (before, records) = (segments(&project), project.journal());
    let count = before.len();
    assert!(count > 200, "{count}");
    let text: String = before.values().map(String::as_str).collect();

    let shown = project.query(&["gc"]);
    let joined = format!("journal  {} files  0 bytes  .milepost/journal\n", count - 3);
    assert!(shown.contains(&joined), "{shown}");
    let ended = project.run_on_disk(GC, "unflushed");
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert!(ended.out.contains(&joined), "{}", ended.text());
    let why = "left: .milepost/journal: N files, N bytes: records of runs are never removed\n";
    assert!(numbers_left_out(&ended.out).contains(why), "{}", ended.out);

    let after = segments(&project);
    let names: Vec<String> = after.keys().cloned().collect();
    let first = format!("000001-{:06}.jsonl", count - 2);
    let last = [count - 1, count].map(|number| format!("{number:06}.jsonl"));
    assert_eq!(names, [&[first][..], &last].concat());
    let joined: String = after.into_values().collect();
    assert_eq!(joined, text);
    assert_eq!(project.journal(), records);
    assert_eq!(project.state().stages.len(), 5);
    project.assert_verified();
    assert!(project.query(&["log"]).lines().count() > 1);

    // Nothing is left to join, and runs continue.
    let again = project.run_on_disk(GC, "unflushed");
    assert!(!again.out.contains("journal  "), "{}", again.text());
    project.input(1, "IfcSlab");
    project.complete(&["run"]);
    project.assert_verified();
}

#[test]
fn full_segments_stay() {
    let project = divided(20);
    let names = segments(&project).into_keys().collect::<Vec<_>>();
    // A seal may be as large as the state that it repeats.
    let tenth = format!("{FOLDER}/{}", names[9]);
    let text = project.read(&tenth);
    let (seal, rest) = text.split_once('\n').unwrap();
    let summary = format!("\"summary\":\"{}", "x".repeat(1 << 18));
    let long = seal.replacen("\"summary\":\"", &summary, 1);
    project.write(&tenth, format!("{long}\n{rest}"));
    // The digests follow.
    divide(&project);
    let count = segments(&project).len();
    fs::remove_file(project.at("workspace/.milepost/journal-head.json")).unwrap();
    project.complete(GC);
    let after = segments(&project).into_keys().collect::<Vec<_>>();
    let expected = [
        "000001-000009.jsonl".to_owned(),
        "000010.jsonl".to_owned(),
        format!("000011-{:06}.jsonl", count - 2),
        format!("{:06}.jsonl", count - 1),
        format!("{count:06}.jsonl"),
    ];
    assert_eq!(after, expected);
    project.query(&["verify"]);
}

#[test]
fn joining_is_stopped_anywhere_and_loses_no_record() {
    let whole = divided(20);
    let start = whole.copy();
    let records = whole.journal();
    let operations = operations(&whole, GC);
    let expected = segments(&whole);
    assert_eq!(expected.len(), 3);
    let stops = stops(&operations, 200);
    at_each(&operations, &stops, |stop| {
        let project = start.copy();
        let ended = project.run_on_disk(GC, &stop.setting);
        assert!(ended.code == 0 || ended.code == 134, "{ended:?}");
        assert_eq!(project.journal(), records);
        project.assert_truth(&[&whole.outputs()], &Files::new());
        project.assert_verified();
        project.complete(GC);
        assert_eq!(segments(&project), expected);
        project.assert_verified();
    });
}

#[test]
fn readers_beside_it_read_every_record() {
    let project = divided(200);
    let (layout, records) = (project.layout(), project.journal());
    let before = segments(&project);
    // A reader keeps the files until it is done.
    let reader = fs::File::open(project.at(FOLDER)).unwrap();
    reader.lock_shared().unwrap();
    let ended = project.run_on_disk(GC, "unflushed");
    let left =
        "left: .milepost/journal: small files are not joined: another process reads them now\n";
    assert!(
        ended.code == 0 && ended.out.contains(left),
        "{}",
        ended.text()
    );
    assert_eq!(segments(&project), before);
    drop(reader);

    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..20 {
                assert_eq!(project.journal(), records);
                let mut found = Vec::new();
                let every = ["\"prev\"".to_owned()];
                journal::read_with(&layout, &every, &mut |record| found.push(record)).unwrap();
                assert_eq!(found, records);
                assert_eq!(journal::latest(&layout, records.len()).unwrap(), records);
                let mut cursor = Cursor::after(&layout, Position::START).unwrap();
                let found = cursor.read(&layout).unwrap();
                let found: Vec<Record> = found.into_iter().map(|(_, record)| record).collect();
                assert_eq!(found, records);
                assert_eq!(
                    cursor.position(),
                    Cursor::at_end(&layout).unwrap().position()
                );
            }
        });
        while segments(&project).len() > 3 {
            project.complete(GC);
        }
    });
    assert_eq!(project.journal(), records);
}

#[test]
fn a_broken_journal_is_not_joined() {
    let project = divided(20);
    project.remove(&format!("{FOLDER}/000007.jsonl"));
    let before: Files = project.workspace_files(&[".milepost/journal"]);
    let ended = project.run_on_disk(GC, "unflushed");
    assert!(
        ended
            .out
            .contains("left: .milepost/journal: the journal is broken: "),
        "{}",
        ended.text()
    );
    assert!(
        ended.out.contains("000007.jsonl is missing"),
        "{}",
        ended.text()
    );
    assert_same(&project.workspace_files(&[".milepost/journal"]), &before);
}
