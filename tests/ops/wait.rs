//! The step `wait`: what it waits for, and what it says when that does not come.

use crate::support::Project;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_engine::ops::run::{RunOptions, run};
use milepost_engine::run::notice::{Notice, Observer};
use milepost_engine::run::report::{Report, StageStatus};
use milepost_engine::run::stop::StopFlag;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(2);

fn project(more: &str) -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"waiting\"\n[params]\nwho = \"ann\"\n",
        ),
        (
            "stages/1_take.toml",
            &format!(
                "[step]\nwait = \"outbox/{{{{ params.who }}}}.json\"\n{more}\n[outputs]\ntaken = \"intermediate/taken.json\"\n"
            ),
        ),
        ("schemas/taken.schema.json", r#"{"required": ["done"]}"#),
    ])
}

fn wanted(project: &Project) -> RunOptions {
    let mut options = project.wanted();
    (options.timing.poll, options.timing.stable) = (MOMENT, MOMENT);
    options
}

fn outcome(report: &Report) -> &Outcome {
    &report.stages[0].failed[0].1
}

#[test]
fn a_file_that_lies_there_is_taken_once() {
    let project = project("");
    project.write("workspace/outbox/ann.json", "{\"done\": 1}");
    let wanted = wanted(&project);
    assert_eq!(project.run_in_process_with(&wanted).stages[0].ran, 1);
    assert_eq!(
        project.read("workspace/intermediate/taken.json"),
        "{\"done\": 1}"
    );
    // Taken is taken: what somebody writes afterwards is for a run that is told to take it.
    project.write("workspace/outbox/ann.json", "{\"done\": 2}");
    assert_eq!(project.run_in_process_with(&wanted).stages[0].ran, 0);
    std::fs::remove_file(project.at("workspace/intermediate/taken.json")).unwrap();
    assert_eq!(project.run_in_process_with(&wanted).stages[0].ran, 1);
    assert_eq!(
        project.read("workspace/intermediate/taken.json"),
        "{\"done\": 2}"
    );
}

#[test]
fn what_is_written_bit_by_bit_is_taken_when_it_is_whole() {
    let project = project("timeout = \"1m\"\nmarker = \"outbox/{{ params.who }}.done\"");
    let wanted = wanted(&project);
    let report = std::thread::scope(|threads| {
        let run = threads.spawn(|| project.run_in_process_with(&wanted));
        let whole = "{\"done\": [1, 2, 3, 4]}";
        for end in 1..=whole.len() {
            project.write("workspace/outbox/ann.json", &whole[..end]);
        }
        project.write("workspace/outbox/ann.done", "");
        run.join().unwrap()
    });
    assert_eq!(report.stages[0].status, StageStatus::Complete);
    assert_eq!(
        project.read("workspace/intermediate/taken.json"),
        "{\"done\": [1, 2, 3, 4]}"
    );
}

#[test]
fn a_time_out_says_what_was_missing() {
    let project = project("timeout = \"30ms\"\nmarker = \"outbox/done\"");
    let wanted = wanted(&project);
    let told = |wanted: &RunOptions| {
        let report = project.run_in_process_with(wanted);
        assert_eq!(report.stages[0].status, StageStatus::Failed);
        let outcome = outcome(&report);
        assert_eq!(outcome.kind, OutcomeKind::Timeout);
        (outcome.message.clone(), outcome.details.clone())
    };
    let said = |message: &str, details: &[&str]| {
        let details = details.iter().map(ToString::to_string).collect::<Vec<_>>();
        (message.to_owned(), details)
    };
    assert_eq!(
        told(&wanted),
        said("`outbox/ann.json` did not appear within 0.0 s", &[])
    );
    project.write("workspace/outbox/ann.json", "{\"done\"");
    assert_eq!(
        told(&wanted),
        said(
            "`outbox/ann.json` exists, but its marker `outbox/done` did not appear within 0.0 s",
            &[]
        )
    );
    project.write("workspace/outbox/done", "");
    let mut restless = wanted.clone();
    restless.timing.stable = Duration::from_mins(1);
    assert_eq!(
        told(&restless),
        said("`outbox/ann.json` was still changing after 0.0 s", &[])
    );
    project.write("workspace/outbox/ann.json", "{}");
    assert_eq!(
        told(&wanted),
        said(
            "`outbox/ann.json` does not match schemas/taken.schema.json: Missing done in object; no valid version appeared within 0.0 s",
            &["Missing done in object"]
        )
    );
    assert!(!project.at("workspace/intermediate/taken.json").exists());
}

/// Stops the run as soon as a batch begins.
struct Stopping<'a>(&'a StopFlag);

impl Observer for Stopping<'_> {
    fn notice(&mut self, notice: Notice) {
        if matches!(notice, Notice::BatchStarted { .. }) {
            self.0.set();
        }
    }
}

#[test]
fn a_stop_ends_it() {
    let project = project("timeout = \"10m\"");
    let stop = StopFlag::new();
    let mut options = wanted(&project);
    options.timing.poll = Duration::from_mins(10);
    let report = run(&project.request(), &options, &mut Stopping(&stop), &stop).unwrap();
    assert!(report.interrupted);
    assert_eq!(report.stages[0].failed, []);
}

#[test]
fn a_link_that_leads_out_is_refused() {
    let project = project("timeout = \"10m\"");
    project.write("elsewhere.json", "{\"done\": 1}");
    std::fs::create_dir_all(project.at("workspace/outbox")).unwrap();
    std::os::unix::fs::symlink(
        project.at("elsewhere.json"),
        project.at("workspace/outbox/ann.json"),
    )
    .unwrap();
    let report = project.run_in_process_with(&wanted(&project));
    assert_eq!(outcome(&report).kind, OutcomeKind::Path);
}

#[test]
fn a_service_that_never_answers_is_given_up() {
    let project = project("");
    project.write(
        "milepost.toml",
        "name = \"waiting\"\n[params]\nwho = \"ann\"\n[services.mute]\ncommand = \"echo starting; exec sleep 1000\"\nready = \"http://127.0.0.1:1/?key=1\"\n",
    );
    project.edit(
        "stages/1_take.toml",
        "[step]",
        "services = [\"mute\"]\n[step]",
    );
    let mut options = wanted(&project);
    options.timing.ready = Duration::from_millis(100);
    let report = project.run_in_process_with(&options);
    assert_eq!(report.stages[0].status, StageStatus::Failed);
    assert_eq!((report.stages[0].left, report.stages[0].ran), (0, 0));
    assert_eq!(outcome(&report).kind, OutcomeKind::Connect);
    let why = &outcome(&report).message;
    let expected =
        "the service `mute`: http://127.0.0.1:1/ did not answer within 0.1 s: could not connect";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn a_table_is_waited_for_until_its_rows_are_valid() {
    let project = project("timeout = \"200ms\"");
    let stage = std::fs::read_to_string(project.at("stages/1_take.toml")).unwrap();
    project.write("stages/1_take.toml", stage.replace(".json", ".csv"));
    project.write("workspace/outbox/ann.csv", "when\n1\n");
    let report = project.run_in_process_with(&wanted(&project));
    let message = &outcome(&report).message;
    assert!(
        message.starts_with("`outbox/ann.csv` is not valid: outbox/ann.csv:1: "),
        "{message}"
    );
    project.write("workspace/outbox/ann.csv", "done\n1\n");
    assert_eq!(
        project.run_in_process_with(&wanted(&project)).stages[0].ran,
        1
    );
}
