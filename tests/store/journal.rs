//! The journal: what was appended is read, torn tails are cut, breaks are named.

use super::place;
use milepost_core::base::clock::StillClock;
use milepost_core::base::digest::Digest;
use milepost_core::model::event::{Event, EventType, Record};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::{
    Journal, JournalError, OpenedJournal, read_all, read_since_seal, written,
};
use milepost_store::store::layout::Layout;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

fn open(layout: &Layout) -> OpenedJournal {
    let clock = Arc::new(StillClock("2026-11-21T10:00:00Z".parse().unwrap()));
    Journal::open(&Disk::real(), layout, clock, "SESSION", "RUN").unwrap()
}

fn started(batch: &str) -> Event {
    Event::AttemptStarted {
        stage: "classify".to_owned(),
        batch: batch.to_owned(),
        attempt: 1,
    }
}

fn append(journal: &mut Journal, event: Event) {
    journal
        .append(
            EventType::Invoke,
            "classify",
            event,
            "tried",
            vec!["a.json".into()],
        )
        .unwrap();
}

/// Three records that fill a segment, a seal, two records.
fn two_segments(layout: &Layout) {
    let mut journal = open(layout).journal;
    for batch in ["batch_1", "batch_2"] {
        append(&mut journal, started(batch));
    }
    append(
        &mut journal,
        Event::BatchFailed {
            stage: "classify".into(),
            batch: "batch_1".into(),
            outcome: Outcome::new(OutcomeKind::Schema, "é ✓"),
            quarantine: Some("x".repeat(1 << 18)),
        },
    );
    let checkpoints = BTreeMap::from([("parse".to_owned(), Digest::of("x"))]);
    journal
        .seal(checkpoints, Vec::new(), BTreeMap::new())
        .unwrap();
    append(&mut journal, Event::Barrier);
    append(&mut journal, started("batch_3"));
    journal.flush().unwrap();
}

fn all(layout: &Layout) -> Result<Vec<Record>, JournalError> {
    let mut records = Vec::new();
    read_all(layout, &mut |_, record| records.push(record))?;
    Ok(records)
}

fn kinds(records: &[Record]) -> Vec<String> {
    let kind = |record: &Record| {
        let value = serde_json::to_value(&record.event).unwrap();
        value["kind"].as_str().unwrap().to_owned()
    };
    records.iter().map(kind).collect()
}

#[test]
fn what_was_appended_is_read() {
    let place = place();
    two_segments(&place.layout);
    let records = all(&place.layout).unwrap();
    assert_eq!(
        kinds(&records),
        [
            "attempt_started",
            "attempt_started",
            "batch_failed",
            "sealed",
            "barrier",
            "attempt_started"
        ]
    );
    assert_eq!(records[0].prev, None);
    let (last, tail) = read_since_seal(&place.layout).unwrap();
    assert_eq!(last, records[3..]);
    assert_eq!((tail.segment, tail.lines, tail.torn), (2, 3, 0));
    let last = written(&place.layout).unwrap().unwrap().segment;
    let lines: Vec<String> = (1..=last)
        .flat_map(|n| {
            let text = fs::read_to_string(place.layout.segment(n)).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    for (line, next) in lines.iter().zip(&records[1..]) {
        assert_eq!(next.prev, Some(Digest::of(line)));
    }
    assert_eq!(
        lines[4],
        format!(
            r#"{{"timestamp":"2026-11-21T10:00:00Z","session_id":"SESSION","run_id":"RUN","agent_name":"classify","event_type":"invoke","kind":"barrier","summary":"tried","artifact_refs":["a.json"],"prev":"{}"}}"#,
            Digest::of(&lines[3])
        )
    );
}

#[test]
fn a_journal_that_is_not_there_is_empty() {
    let place = place();
    let (records, tail) = read_since_seal(&place.layout).unwrap();
    assert_eq!((records.len(), tail.segment, tail.last), (0, 0, None));
    assert!(!place.layout.own().exists());
    let opened = open(&place.layout);
    assert_eq!((opened.records.len(), opened.cut), (0, None));
    assert_eq!(all(&place.layout).unwrap(), []);
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_and_the_chain_continues() {
    let place = place();
    two_segments(&place.layout);
    let path = place.layout.segment(2);
    let whole = fs::read(&path).unwrap();
    let before = read_since_seal(&place.layout).unwrap().0;
    let start = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for end in start..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let (records, tail) = read_since_seal(&place.layout).unwrap();
        assert_eq!(records, before[..2], "cut at {end}");
        let (size, torn) = (start as u64, (end - start) as u64);
        assert_eq!((tail.lines, tail.size, tail.torn), (2, size, torn));
        assert_eq!(all(&place.layout).unwrap().len(), 5);
        assert_eq!(fs::read(&path).unwrap().len(), end, "a reader changed it");

        let mut opened = open(&place.layout);
        assert_eq!(opened.records, before[..2]);
        assert_eq!(opened.cut.as_ref().map_or(0, |cut| cut.bytes), torn);
        append(&mut opened.journal, started("batch_3"));
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {end}");
    }
}

#[test]
fn a_tail_of_zeros_is_cut() {
    let place = place();
    two_segments(&place.layout);
    let path = place.layout.segment(2);
    let whole = fs::read(&path).unwrap();
    let mut torn = whole.clone();
    torn.extend([0; 4096]);
    fs::write(&path, &torn).unwrap();
    let cut = open(&place.layout).cut.unwrap();
    assert_eq!((cut.bytes, cut.place.line), (4096, 4));
    assert_eq!(fs::read(&path).unwrap(), whole);
}

/// Changes one line of a segment, and says where the journal is then found broken.
fn broken(segment: u64, line: usize, change: impl Fn(&str) -> String) -> (u64, u64, String) {
    let place = place();
    two_segments(&place.layout);
    let path = place.layout.segment(segment);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(at, text)| {
            if at + 1 == line {
                change(text)
            } else {
                text.to_owned()
            }
        })
        .collect();
    fs::write(&path, lines.concat()).unwrap();
    match all(&place.layout).unwrap_err() {
        JournalError::Broken { place, problem } => {
            let before: usize = lines[..place.line as usize - 1]
                .iter()
                .map(String::len)
                .sum();
            assert_eq!(
                (place.segment == segment, place.offset),
                (true, before as u64)
            );
            (place.segment, place.line, problem)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_break_is_found_where_it_is() {
    let (segment, line, problem) = broken(1, 1, |text| text.replace("batch_1", "batch_9"));
    assert_eq!((segment, line), (1, 2));
    assert!(problem.contains("a line was changed"), "{problem}");
    let (_, line, _) = broken(1, 2, |_| String::new());
    assert_eq!(line, 2);
    let (_, line, problem) = broken(1, 2, |text| text[..20].to_owned() + "\n");
    assert_eq!(line, 2);
    assert!(problem.starts_with("not a record of Milepost"), "{problem}");
    let (_, line, _) = broken(1, 3, |text| text.trim_end().to_owned());
    assert_eq!(line, 3);
    let (_, line, _) = broken(2, 2, |text| text.replace("tried", "tired"));
    assert_eq!(line, 3);
    let (_, line, problem) = broken(2, 1, |_| String::new());
    assert_eq!(line, 1);
    assert!(problem.contains("follows"), "{problem}");
}

fn seal(journal: &mut Journal) {
    journal
        .seal(BTreeMap::new(), Vec::new(), BTreeMap::new())
        .unwrap();
}

#[test]
fn a_segment_has_seals_until_it_is_full() {
    let place = place();
    let path = place.layout.segment(1);
    let mut sizes = Vec::new();
    for batch in ["batch_1", "batch_2", "batch_3"] {
        let mut journal = open(&place.layout).journal;
        append(&mut journal, started(batch));
        seal(&mut journal);
        sizes.push(fs::metadata(&path).unwrap().len() as usize);
    }
    append(&mut open(&place.layout).journal, started("batch_4"));
    assert_eq!(written(&place.layout).unwrap().unwrap().segment, 1);
    let records = all(&place.layout).unwrap();
    assert_eq!(
        kinds(&records),
        ["attempt_started", "sealed"]
            .repeat(3)
            .into_iter()
            .chain(["attempt_started"])
            .collect::<Vec<_>>()
    );
    let (last, tail) = read_since_seal(&place.layout).unwrap();
    assert_eq!((&last[..], tail.lines), (&records[5..], 7));

    // A seal that a kill tore counts only when it is whole.
    let whole = fs::read(&path).unwrap();
    for size in sizes[1]..sizes[2] {
        fs::write(&path, &whole[..size]).unwrap();
        let (last, tail) = read_since_seal(&place.layout).unwrap();
        let is_begun = last.len() == 2;
        assert_eq!(last, records[3..3 + last.len()], "{size} bytes");
        assert_eq!(tail.size + tail.torn, size as u64);
        assert!(is_begun || tail.lines == 4);
        assert_eq!(open(&place.layout).records, last);
    }
    // What is before a seal was flushed: zeros there are damage, which commands that need only the end do not read.
    fs::write(&path, &whole).unwrap();
    zero(&place.layout, sizes[0] + 5, sizes[0] + 9);
    let error = all(&place.layout).unwrap_err().to_string();
    assert!(error.contains("000001.jsonl, line 3 (byte "), "{error}");
    assert_eq!(read_since_seal(&place.layout).unwrap().0, records[5..]);
}

#[test]
fn the_last_segment_must_follow_the_one_before() {
    let place = place();
    two_segments(&place.layout);
    let path = place.layout.segment(1);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace('✓', "x")).unwrap();
    let error = read_since_seal(&place.layout).unwrap_err();
    let JournalError::Broken { place: at, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((at.segment, at.line, at.offset), (2, 1, 0));
    assert!(error.to_string().contains("Nothing was repaired"));
    fs::remove_file(&path).unwrap();
    for error in [
        read_since_seal(&place.layout).unwrap_err(),
        all(&place.layout).unwrap_err(),
    ] {
        assert!(
            error.to_string().contains("000001.jsonl is missing"),
            "{error}"
        );
    }
}

#[test]
fn a_newer_kind_is_not_a_torn_tail() {
    let place = place();
    two_segments(&place.layout);
    let path = place.layout.segment(2);
    let text = fs::read_to_string(&path).unwrap();
    let at = text.rfind("attempt_started").unwrap();
    let newer = text[..at].to_owned() + "teleported" + &text[at + "attempt_started".len()..];
    fs::write(&path, newer).unwrap();
    let error = read_since_seal(&place.layout).unwrap_err().to_string();
    assert!(
        error.ends_with("`teleported` is written by a newer Milepost: update milepost"),
        "{error}"
    );
}

#[test]
fn lines_of_megabytes_are_read() {
    let place = place();
    let mut journal = open(&place.layout).journal;
    let large = Event::StageForgotten {
        stage: "x".repeat(3_000_000),
    };
    append(&mut journal, large.clone());
    seal(&mut journal);
    assert_eq!(all(&place.layout).unwrap()[0].event, large);
    assert_eq!(read_since_seal(&place.layout).unwrap().0.len(), 1);
}

/// Writes zeros over bytes of the last segment.
fn zero(layout: &Layout, from: usize, to: usize) {
    let path = layout.segment(written(layout).unwrap().unwrap().segment);
    let mut bytes = fs::read(&path).unwrap();
    bytes[from..to].fill(0);
    fs::write(&path, bytes).unwrap();
}

#[test]
fn lines_that_a_power_failure_left_zeros_among_are_cut() {
    let place = place();
    two_segments(&place.layout);
    let path = place.layout.segment(2);
    let text = fs::read_to_string(&path).unwrap();
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    // Three lines: the middle one in part, or with the end of its line.
    for (from, to) in [(ends[0], ends[0] + 9), (ends[0] + 5, ends[1])] {
        fs::write(&path, &text).unwrap();
        zero(&place.layout, from, to);
        let (records, tail) = read_since_seal(&place.layout).unwrap();
        assert_eq!(kinds(&records), ["sealed"]);
        assert_eq!(
            (tail.size, tail.torn),
            (ends[0] as u64, (text.len() - ends[0]) as u64)
        );
        let cut = open(&place.layout).cut.unwrap();
        assert_eq!((cut.place.line, cut.bytes), (2, tail.torn));
        assert_eq!(fs::read_to_string(&path).unwrap(), text[..ends[0]]);
    }
}

#[test]
fn zeros_before_what_was_flushed_are_damage() {
    let place = place();
    two_segments(&place.layout);
    let mut journal = open(&place.layout).journal;
    append(&mut journal, Event::Barrier);
    append(&mut journal, Event::Barrier);
    let text = fs::read_to_string(place.layout.segment(2)).unwrap();
    let end = text.find('\n').unwrap() + 1;
    zero(&place.layout, end, end + 4);
    let error = read_since_seal(&place.layout).unwrap_err().to_string();
    assert!(error.contains("the journal is broken"), "{error}");
    assert!(error.contains("000002.jsonl, line 2 (byte "), "{error}");
}
