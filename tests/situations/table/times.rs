//! Clocks and times that mislead: what counts is the content.

use super::super::gated::{gated, release, wait_for_batch};
use super::super::letters::{PAGE, checked, completed, letters};
use super::super::mounted::Mounted;
use super::{both, matches_a_fresh_run};
use crate::support::required::require;
use crate::support::{Project, exit_code, long_ago, printed};
use std::time::{Duration, SystemTime};

const BO: &str = "workspace/inputs/person_2.json";
/// As long as what it replaces.
const BI: &str = r#"{"id": 2, "name": "Bi"}"#;
const WHAT_READS_IT: [&str; 3] = ["clean/person_2", "greet/person_2", "join"];
const LETTER: &str = "workspace/intermediate/letters/person_1.txt";

#[test]
fn an_input_edited_while_its_batch_runs_makes_the_result_stale_and_the_next_run_does_it_again() {
    let project = gated();
    project.write(
        "stages/1_meet.toml",
        project
            .read("stages/1_meet.toml")
            .replace(
                "[each.n]\ncount = 2\n",
                "[inputs]\ntext = \"inputs/text.txt\"\n",
            )
            .replace("{{ n }}.txt", "made.txt")
            .replace("{{ n }}", "1"),
    );
    project.write("workspace/inputs/text.txt", "before");
    let run = project.spawn(&["run"]);
    wait_for_batch(&project, 1);
    project.write("workspace/inputs/text.txt", "after");
    release(&project, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 3, "{}", printed(&output));
    assert!(!project.exists("workspace/stage_1_complete.json"));
    let plan = project.plan(&[]).unwrap();
    assert_eq!(
        plan["stages"][0]["will"][0]["reasons"][0]["reason"], "stale",
        "{plan:#}"
    );
    let run = project.spawn(&["run"]);
    wait_for_batch(&project, 1);
    release(&project, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 0, "{}", printed(&output));
    assert!(project.exists("workspace/stage_1_complete.json"));
    let again = project.run(&[]);
    again.expect(0, &[]);
    assert!(again.records.is_empty(), "{:#?}", again.records);
}

/// Everything that lies there is given one time.
fn at_one_time(project: &Project, time: SystemTime) {
    for path in project.digests().keys() {
        project.set_mtime(&format!("workspace/{path}"), time);
    }
}

/// An output of the same size is refused; when it is put back, nothing runs. An input of the same size runs what reads it.
fn is_right(project: &Project) {
    let made = project.read(LETTER);
    project.write_with_mtime_kept(LETTER, made.replace("ADA", "EVE"));
    project.run(&[]).expect(5, &[]).says("person_1.txt");
    project.write_with_mtime_kept(LETTER, &made);
    project.run(&[]).expect(0, &[]);
    project.write_with_mtime_kept(BO, BI);
    project.run(&[]).expect(0, &WHAT_READS_IT);
    let page = PAGE.replace("BO", "BI");
    assert_eq!(project.read("workspace/outputs/page.md"), page);
    matches_a_fresh_run(project);
}

#[test]
fn a_clock_set_back() {
    // What was recorded was recorded an hour from now; then a clock that was right is set two hours back.
    for clock in ["0", "-7200"] {
        let mut project = checked();
        project.env("MILEPOST_AHEAD", clock);
        is_right(&project);
    }
}

#[test]
fn equal_mtimes_and_another_content() {
    both(|project| {
        at_one_time(project, long_ago());
        project.run(&[]).expect(0, &[]);
        is_right(project);
    });
}

#[test]
fn mtimes_in_the_future() {
    both(|project| {
        at_one_time(project, SystemTime::now() + Duration::from_hours(24));
        project.run(&[]).expect(0, &[]);
        project.run(&[]).expect(0, &[]);
        is_right(project);
    });
}

/// Times of whole seconds, by which nothing that happens within one can be told apart: those of ext4 with small inodes.
#[test]
fn a_file_system_with_times_of_one_second() {
    let project = letters();
    let given = project.digests();
    let inputs: Vec<_> = given
        .keys()
        .map(|path| format!("workspace/{path}"))
        .map(|path| (project.read(&path), path))
        .collect();
    let (workspace, image) = (project.at("workspace"), project.at("image"));
    let _mounted = require!(Mounted::ext4(&workspace, &image, &["-I", "128"]));
    for (text, path) in inputs {
        project.write(&path, text);
    }
    assert_eq!(project.run(&[]).code, 0);
    is_right(&project);
    assert_eq!(
        completed().output_digests().len(),
        project.output_digests().len()
    );
}
