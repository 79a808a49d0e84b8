//! `--force` outlives the run that was asked for it: what that run does not rebuild, the next one does.

use super::gated::{gated, release, wait_for_batch};
use super::policies::items;
use crate::support::{Project, RunResult, exit_code, printed};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const INTERRUPTED: &str = "forced by an earlier run that was interrupted";
const ENDED: &str = "forced by an earlier run that ended without rebuilding it";

/// The reasons of each batch that runs, in the words of `reason`.
fn reasons(project: &Project, arguments: &[&str]) -> Vec<(String, Vec<String>)> {
    let plan = project.plan(arguments).unwrap();
    let mut all = Vec::new();
    for stage in plan["stages"].as_array().unwrap() {
        for will in stage["will"].as_array().unwrap() {
            let reasons = will["reasons"].as_array().unwrap().iter();
            let words = reasons.map(|reason| reason["reason"].as_str().unwrap().to_owned());
            let stage = stage["stage"].as_str().unwrap();
            all.push((
                format!("{stage}/{}", will["batch"].as_str().unwrap()),
                words.collect(),
            ));
        }
    }
    all
}

fn line(batch: &str, reasons: &[&str]) -> (String, Vec<String>) {
    (
        batch.to_owned(),
        reasons.iter().map(ToString::to_string).collect(),
    )
}

/// The fields of a stage in `status --json`.
fn due(project: &Project, stage: usize) -> Value {
    let output = project.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["stages"][stage]["due"].clone()
}

fn is_idle(ran: &RunResult) {
    ran.expect(0, &[]).says("nothing changed");
    assert_eq!(ran.records.len(), 0, "{}", ran.output);
}

#[test]
fn what_a_limit_leaves_of_a_forced_stage_the_next_run_rebuilds() {
    let project = items("");
    project.run(&[]);
    project
        .run(&["--force", "work", "--limit", "2"])
        .expect(3, &["work/1", "work/2"]);
    let left = [3, 4, 5].map(|item| line(&format!("work/{item}"), &["forced_before"]));
    assert_eq!(reasons(&project, &["work"]), left);
    for arguments in [&["plan"][..], &["why", "work/4"], &["why", "work"]] {
        let (_, text) = project.milepost(arguments);
        assert!(text.contains(ENDED), "{arguments:?}: {text}");
    }
    let (_, text) = project.milepost(&["status"]);
    assert!(
        text.contains(
            "work: 3 batches forced by an earlier run that ended without rebuilding them"
        ),
        "{text}"
    );
    assert_eq!(
        (
            &due(&project, 0)["forced"],
            &due(&project, 0)["forced_interrupted"]
        ),
        (&json!(3), &json!(false))
    );
    // A part of them, and then the rest.
    project.run(&["work/5"]).expect(3, &["work/5"]);
    project.run(&[]).expect(0, &["work/3", "work/4"]);
    assert_eq!(due(&project, 0), Value::Null);
    is_idle(&project.run_unplanned(&[]));
}

#[test]
fn an_interrupted_forced_run_is_finished_by_the_next_run() {
    let project = gated();
    let run = project.spawn(&["run", "--jobs", "2"]);
    for n in [1, 2] {
        wait_for_batch(&project, n);
        release(&project, n);
    }
    assert_eq!(exit_code(&run.wait_with_output().unwrap()), 0);
    for signal in ["-INT", "-KILL"] {
        let known = project.records().len();
        let mut run = project.spawn(&["run", "--force", "meet"]);
        wait_for_batch(&project, 1);
        release(&project, 1);
        wait_for_batch(&project, 2);
        // A batch that a kill overtakes before it is recorded is rebuilt once more.
        let end = Instant::now() + Duration::from_secs(30);
        let is_published = || {
            let records = project.records().split_off(known);
            records.iter().any(|record| record["kind"] == "published")
        };
        while !is_published() && Instant::now() < end {
            std::thread::yield_now();
        }
        let sent = Command::new("kill")
            .args([signal, &run.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        run.wait().unwrap();
        assert_eq!(
            reasons(&project, &[]),
            [line("meet/2", &["forced_before"])],
            "{signal}"
        );
        let (_, text) = project.milepost(&["plan"]);
        assert!(text.contains(INTERRUPTED), "{signal}: {text}");
        assert_eq!(
            due(&project, 0)["forced_interrupted"],
            json!(true),
            "{signal}"
        );
        let known = project.records().len();
        let again = project.spawn(&["run"]);
        wait_for_batch(&project, 2);
        release(&project, 2);
        let output = again.wait_with_output().unwrap();
        assert_eq!(exit_code(&output), 0, "{}", printed(&output));
        let records = project.records().split_off(known);
        let begun = records
            .iter()
            .filter(|record| record["kind"] == "attempt_started");
        let begun: Vec<&Value> = begun.map(|record| &record["data"]["batch"]).collect();
        assert_eq!(begun, [&json!("2")], "{signal}");
        is_idle(&project.run_unplanned(&[]));
    }
}

#[test]
fn a_failed_batch_of_a_forced_run_and_those_after_it_stay_forced() {
    let project = items("");
    project.run(&[]);
    project.write("bad", "3\n");
    project
        .run(&["--force", "work"])
        .expect(1, &["work/1", "work/2", "work/3"]);
    assert_eq!(
        reasons(&project, &["work"]),
        [
            line("work/3", &["forced_before", "failed"]),
            line("work/4", &["forced_before"]),
            line("work/5", &["forced_before"]),
        ]
    );
    project.write("bad", "");
    project.run(&[]).expect(0, &["work/3", "work/4", "work/5"]);
    is_idle(&project.run_unplanned(&[]));
}

#[test]
fn every_stage_that_a_forced_run_does_not_get_to_stays_forced() {
    let project = items("");
    project.run(&[]);
    project
        .run(&["--force", "--limit", "5"])
        .expect(3, &["work/1", "work/2", "work/3", "work/4", "work/5"]);
    assert_eq!(reasons(&project, &[]), [line("join/", &["forced_before"])]);
    project.run(&[]).expect(0, &["join"]);
    is_idle(&project.run_unplanned(&[]));
}

#[test]
fn no_force_keeps_what_is_up_to_date() {
    let project = items("");
    project.run(&[]);
    project
        .run(&["--force", "--limit", "2"])
        .expect(3, &["work/1", "work/2"]);
    // A part is withdrawn; the rest stays forced.
    project
        .run(&["--no-force", "work/3", "work/4"])
        .expect(3, &[]);
    assert_eq!(
        reasons(&project, &[]),
        [
            line("work/5", &["forced_before"]),
            line("join/", &["forced_before"])
        ]
    );
    assert_eq!(reasons(&project, &["--no-force"]), []);
    project.run(&["--no-force"]).expect(0, &[]);
    is_idle(&project.run_unplanned(&[]));
    let (code, text) = project.milepost(&["run", "--force", "--no-force"]);
    assert_eq!(code, 2, "{text}");
}

#[test]
fn an_output_that_is_modified_after_the_interruption_is_not_overwritten() {
    let project = items("");
    project.run(&[]);
    project.run(&["--force", "work", "--limit", "4"]);
    project.write("workspace/intermediate/item_5.json", "{\"item\": 50}");
    project.run(&[]).expect(5, &[]);
    let (code, text) = project.milepost(&["accept", "work/5", "--why", "better"]);
    assert_eq!(code, 0, "{text}");
    // To accept an output takes `--force` back.
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(
        project.read("workspace/intermediate/item_5.json"),
        "{\"item\": 50}"
    );
    is_idle(&project.run_unplanned(&[]));
}

#[test]
fn a_batch_that_is_retired_is_no_longer_forced() {
    let project = items("");
    project.run(&[]);
    project.run(&["--force", "work", "--limit", "3"]);
    project.edit("stages/1_work.toml", "count = 5", "count = 3");
    let ran = project.run(&[]);
    let retired = vec!["work/4".to_owned(), "work/5".to_owned()];
    assert_eq!((ran.code, ran.batches("retired")), (0, retired.clone()));
    project.edit("stages/1_work.toml", "count = 3", "count = 5");
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.restored()), (0, retired));
    is_idle(&project.run_unplanned(&[]));
}
