//! Following the journal: each record comes once, as soon as it is whole, over segments and runs.

use super::{Place, place};
use milepost_core::base::clock::StillClock;
use milepost_core::model::event::{Event, EventType, Record};
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::{Cursor, Journal, Position, read_all};
use milepost_store::store::layout::Layout;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

fn open(layout: &Layout, run: &str) -> Journal {
    let clock = Arc::new(StillClock("2026-11-21T10:00:00Z".parse().unwrap()));
    Journal::open(&Disk::real(), layout, clock, "SESSION", run)
        .unwrap()
        .journal
}

fn append(journal: &mut Journal, batch: &str) {
    append_with(journal, batch, Vec::new());
}

/// Appends a record that fills a segment.
fn fill(journal: &mut Journal, batch: &str) {
    append_with(journal, batch, vec!["x".repeat(1 << 18)]);
}

fn append_with(journal: &mut Journal, batch: &str, files: Vec<String>) {
    let event = Event::AttemptStarted {
        stage: "classify".to_owned(),
        batch: batch.to_owned(),
        attempt: 1,
    };
    journal
        .append(EventType::Invoke, "classify", event, "tried", files)
        .unwrap();
}

fn seal(journal: &mut Journal) {
    journal
        .seal(BTreeMap::new(), Vec::new(), BTreeMap::new())
        .unwrap();
}

/// What each record is about: the batch, or `sealed`.
fn names(records: &[(Position, Record)]) -> Vec<&str> {
    let name = |record: &'_ Record| match &record.event {
        Event::AttemptStarted { batch, .. } => batch.clone(),
        _ => "sealed".to_owned(),
    };
    records
        .iter()
        .map(|(_, record)| &*name(record).leak())
        .collect()
}

fn all(layout: &Layout) -> Vec<Record> {
    let mut records = Vec::new();
    read_all(layout, &mut |_, record| records.push(record)).unwrap();
    records
}

/// Returns what the cursor reads, or its error with the workspace's folder replaced.
fn read(cursor: &mut Cursor, place: &Place) -> Result<Vec<String>, String> {
    let found = cursor.read(&place.layout);
    let found = found.map(|records| names(&records).iter().map(ToString::to_string).collect());
    found.map_err(|error| shown(&error, place))
}

fn shown(error: &impl ToString, place: &Place) -> String {
    let folder = format!("{}/", place.layout.root().display());
    error.to_string().replace(&folder, "")
}

#[test]
fn each_record_comes_once_over_segments_and_runs() {
    let place = place();
    let layout = &place.layout;
    let mut cursor = Cursor::at_end(layout).unwrap();
    assert_eq!(cursor.position(), Position::START);
    assert_eq!(read(&mut cursor, &place), Ok(vec![]));

    let mut journal = open(layout, "RUN_1");
    assert_eq!(read(&mut cursor, &place), Ok(vec![]));
    append(&mut journal, "a");
    append(&mut journal, "b");
    let mut found = cursor.read(layout).unwrap();
    assert_eq!(names(&found), ["a", "b"]);
    assert_eq!(read(&mut cursor, &place), Ok(vec![]));
    fill(&mut journal, "c");
    seal(&mut journal);
    seal(&mut journal);
    append(&mut journal, "d");
    drop(journal);
    append(&mut open(layout, "RUN_2"), "e");
    found.extend(cursor.read(layout).unwrap());
    assert_eq!(names(&found), ["a", "b", "c", "sealed", "sealed", "d", "e"]);
    let records = all(layout);
    assert!(found.iter().map(|(_, record)| record).eq(&records));
    assert_eq!(read(&mut cursor, &place), Ok(vec![]));

    // From every position, what comes after it is the same.
    let starts = std::iter::once(Position::START).chain(found.iter().map(|(after, _)| *after));
    for (number, position) in starts.enumerate() {
        let mut cursor = Cursor::after(layout, position).unwrap();
        assert_eq!(cursor.position(), position);
        assert_eq!(cursor.read(layout).unwrap(), found[number..]);
    }
    let start_of_second: Position = "2:0".parse().unwrap();
    let mut cursor = Cursor::after(layout, start_of_second).unwrap();
    assert_eq!(cursor.read(layout).unwrap(), found[3..]);

    let mut cursor = Cursor::at_end(layout).unwrap();
    assert_eq!(cursor.position(), found[6].0);
    append(&mut open(layout, "RUN_3"), "f");
    assert_eq!(read(&mut cursor, &place), Ok(vec!["f".to_owned()]));
}

#[test]
fn a_line_comes_when_it_is_whole() {
    let place = place();
    let layout = &place.layout;
    let mut journal = open(layout, "RUN");
    for batch in ["a", "b", "c"] {
        append(&mut journal, batch);
    }
    drop(journal);
    let path = layout.segment(1);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    let after_b = Position {
        segment: 1,
        offset: ends[1] as u64 + 1,
    };
    for size in ends[1] + 1..whole.len() {
        fs::write(&path, &whole[..size]).unwrap();
        let mut cursor = Cursor::after(layout, after_b).unwrap();
        assert_eq!(read(&mut cursor, &place), Ok(vec![]), "{size} bytes");
        assert_eq!(Cursor::at_end(layout).unwrap().position(), after_b);
        fs::write(&path, &whole).unwrap();
        assert_eq!(read(&mut cursor, &place), Ok(vec!["c".to_owned()]));
    }
    // A power failure leaves zeros, which the next run cuts off.
    let lost = [&whole[..=ends[1]], &[0; 40], b"\n", &whole[ends[1] + 1..]].concat();
    fs::write(&path, lost).unwrap();
    let mut cursor = Cursor::at_end(layout).unwrap();
    assert_eq!(cursor.position(), after_b);
    assert_eq!(read(&mut cursor, &place), Ok(vec![]));
    append(&mut open(layout, "RUN_2"), "d");
    assert_eq!(read(&mut cursor, &place), Ok(vec!["d".to_owned()]));
}

#[test]
fn what_is_no_longer_there_is_reported() {
    let place = place();
    let layout = &place.layout;
    let mut journal = open(layout, "RUN");
    fill(&mut journal, "a");
    seal(&mut journal);
    append(&mut journal, "b");
    drop(journal);
    let end = Cursor::at_end(layout).unwrap().position();
    let gone = |position: &str| {
        format!(
            "no record of .milepost/journal/00000{}.jsonl ends at {position}: the journal was moved away or replaced, or `gc` joined its segments, in the meantime. \
             Start again at its end",
            &position[..1]
        )
    };
    for position in ["1:7", "1:99999", "2:1", "3:1", "4:0"] {
        let error = Cursor::after(layout, position.parse().unwrap()).unwrap_err();
        assert_eq!(shown(&error, &place), gone(position));
    }

    let mut at_end = Cursor::at_end(layout).unwrap();
    let mut at_start = Cursor::after(layout, Position::START).unwrap();
    fs::rename(layout.journal(), layout.own().join("away")).unwrap();
    assert_eq!(read(&mut at_end, &place), Err(gone(&end.to_string())));
    assert_eq!(read(&mut at_start, &place), Ok(vec![]));

    // Another journal in its place: shorter, then long enough.
    let mut journal = open(layout, "OTHER");
    fill(&mut journal, "x");
    seal(&mut journal);
    assert_eq!(read(&mut at_end, &place), Err(gone(&end.to_string())));
    let mut short = Cursor::after(layout, end);
    assert_eq!(
        short.as_mut().map_err(|error| shown(error, &place)).err(),
        Some(gone(&end.to_string()))
    );
    for batch in ["y", "z"] {
        append(&mut journal, batch);
    }
    assert_eq!(read(&mut at_end, &place), Err(gone(&end.to_string())));
}

#[test]
fn records_before_a_break_come_first() {
    let place = place();
    let layout = &place.layout;
    let mut journal = open(layout, "RUN");
    for batch in ["a", "b", "c"] {
        append(&mut journal, batch);
    }
    drop(journal);
    let text = fs::read_to_string(layout.segment(1)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let broken = format!("{}\n{}\nno record\n{}\n", lines[0], lines[1], lines[2]);
    fs::write(layout.segment(1), broken).unwrap();
    let mut cursor = Cursor::after(layout, Position::START).unwrap();
    let before = Ok(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(read(&mut cursor, &place), before);
    let offset = cursor.position().offset;
    for _ in 0..2 {
        let error = read(&mut cursor, &place).unwrap_err();
        let expected = format!(
            "the journal is broken: .milepost/journal/000001.jsonl, line 3 (byte {offset}): not a record of Milepost: expected "
        );
        assert!(error.starts_with(&expected), "{error}");
    }
    fs::remove_file(layout.segment(1)).unwrap();
    fs::write(layout.segment(2), text).unwrap();
    let mut cursor = Cursor::after(layout, Position::START).unwrap();
    let error = read(&mut cursor, &place).unwrap_err();
    assert!(
        error.starts_with("the journal is broken: .milepost/journal/000001.jsonl is missing"),
        "{error}"
    );
}
