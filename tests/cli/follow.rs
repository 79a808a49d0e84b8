//! `log --follow`: records come as runs write them, and Ctrl-C ends it.

use crate::support::{Project, expect};
use crate::watch::session::Session;
use serde_json::Value;

/// Returns the lines up to the end of a run, without the times.
fn run(session: &Session, project: &Project, last: &str) -> Vec<String> {
    assert_eq!(project.milepost(&["-q"]), (0, String::new()));
    let mut lines = Vec::new();
    loop {
        lines.extend(session.until(""));
        let line: &String = lines.last().unwrap();
        if line.ends_with(last) {
            break;
        }
    }
    let untimed = lines.iter().map(|line| line[22..].to_owned());
    untimed.collect()
}

#[test]
fn records_of_one_run_after_another_are_printed_until_ctrl_c() {
    let project = Project::letters();
    let session = Session::of(project.spawn(&["log", "-f", "join"]));
    let first = run(&session, &project, "join complete: 1 batch");
    assert_eq!(
        first,
        [
            "invoke    join      join starts: 1 of 1 batch",
            "handoff   join      join reads 3 files from copy",
            "invoke    join      join starts",
            "complete  join      join done: 1 file",
            "complete  join      join complete: 1 batch",
        ]
    );
    project.edit("milepost.toml", "Hello", "Good day");
    let second = run(&session, &project, "join complete: 1 batch");
    assert_eq!(
        second,
        [
            "revision  milepost  stage_2_complete.json is removed: join must be rebuilt",
            "invoke    join      join starts: 1 of 1 batch",
            "handoff   join      join reads 3 files from copy",
            "invoke    join      join starts",
            "complete  join      join done: 1 file",
            "complete  join      join complete: 1 batch",
        ]
    );
    assert_eq!(session.end(), (Some(130), vec![]));
}

#[test]
fn with_json_each_line_is_a_record() {
    let project = Project::letters();
    project.write("workspace/inputs/person_3.json", "no name\n");
    assert_eq!(project.milepost(&["-q", "-k"]).0, 1);
    let words = ["log", "--follow", "--json", "--errors", "--last", "1"];
    let session = Session::of(project.spawn(&words));
    let next = || -> Value { serde_json::from_str(&session.until("")[0]).unwrap() };
    let all = project.records();
    let errors = |records: &[Value]| -> Vec<Value> {
        let of_errors = records
            .iter()
            .filter(|record| record["event_type"] == "error");
        of_errors.cloned().collect()
    };
    assert_eq!(Some(&next()), errors(&all).last());
    assert_eq!(project.milepost(&["-q", "-k"]).0, 1);
    let later = project.records().split_off(all.len());
    let later = errors(&later);
    assert!(!later.is_empty());
    for error in later {
        assert_eq!(next(), error);
    }
    assert_eq!(session.end(), (Some(130), vec![]));
}

#[test]
fn ends_when_nothing_reads_it_and_refuses_what_it_cannot_follow() {
    let project = Project::letters();
    let mut unread = project.spawn(&["log", "-f"]);
    drop(unread.stdout.take());
    assert_eq!(unread.wait().unwrap().code(), Some(0));

    expect(
        project.output("log -f sport"),
        2,
        "",
        "error: there is no stage `sport`; this project has copy, join\n",
    );
    project.write("workspace/.milepost/journal/000001.jsonl", "1\n2\n");
    expect(
        project.output("log -f"),
        1,
        "",
        "error: the journal is broken: …/workspace/.milepost/journal/000001.jsonl, line 1 (byte 0): not a record of Milepost: invalid type: integer `1`, expected struct Record at line 1 column 1. Nothing was repaired. Put back `.milepost/journal` from a copy; or move `.milepost/journal` away and `manifests` with it, and every stage runs again\n",
    );
}
