//! No batch is submitted twice, whatever becomes of the scheduler's answer to a submission.

use super::pbs::Pbs;
use super::{check_outputs, project, runs, wait_until};
use crate::support::Project;
use crate::support::required::require;

const STAGE: &str = "executor = \"command\"";

/// Returns a declaration whose `submit` submits, and then does something else.
fn then(executor: &str, name: bool, then: &str) -> String {
    let last = if name {
        "{{ name }}\"\npoll"
    } else {
        "{{ memory_mb }}\"\npoll"
    };
    let (before, end) = executor.split_once(last).unwrap();
    let end = end.trim_start();
    let last = last.split_once('"').unwrap().0;
    format!("{before}{last}{then}\"\npoll {end}")
}

#[track_caller]
fn check_once(project: &Project, pbs: &Pbs, count: usize) {
    check_outputs(project, count);
    assert!(
        runs(project).values().all(|&times| times == 1),
        "{:?}",
        runs(project)
    );
    assert_eq!(pbs.submissions().len(), 1);
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn jobs_are_found_by_their_name_if_the_answer_cannot_be_read() {
    let remark = " >/dev/null; echo your license ends soon";
    // The scheduler does not say which jobs it has, either, when it is asked for the first time.
    let silent = "echo x >>asked; [ $(wc -l <asked) -gt 2 ] || exit 1; ";
    for (answers, silent) in [(remark, ""), (" >/dev/null", silent), ("; kill $$", silent)] {
        let pbs = require!(Pbs::start(2));
        let executor = pbs.executor_that_finds("batches_per_job = 1\n");
        let executor = then(&executor, true, answers);
        let executor = executor.replace("find = \"", &format!("find = \"{silent}"));
        let project = project(4, &executor, STAGE, "");
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert!(
            ran.output
                .contains("up submitted 4 batches in 4 jobs with `command`: 0.pbs"),
            "{}",
            ran.output
        );
        check_once(&project, &pbs, 4);
    }
}

#[test]
fn jobs_that_a_silent_scheduler_may_have_are_left_to_the_next_run() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor_that_finds("batches_per_job = 1\n");
    let executor = then(&executor, true, " >/dev/null");
    let silent = "find = \"if [ -e silent ]; then echo try later; exit 1; fi; ";
    let executor = executor.replace("find = \"", silent);
    let project = project(2, &executor, STAGE, "");
    project.write("silent", "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(
        ran.output.contains("`find` failed: try later"),
        "{}",
        ran.output
    );
    assert_eq!(pbs.submissions().len(), 1);
    project.remove("silent");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_once(&project, &pbs, 2);
}

#[test]
fn jobs_that_cannot_be_found_are_not_submitted_again() {
    let pbs = require!(Pbs::start(2));
    let executor = then(&pbs.executor("batches_per_job = 1\n"), false, " >/dev/null");
    let project = project(2, &executor, STAGE, "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let printed =
        "`submit` printed \"\", expected the id of the jobs as its last word; the jobs `milepost-";
    assert!(ran.output.contains(printed), "{}", ran.output);
    assert!(
        ran.output
            .contains("may be submitted: cancel them, then run again"),
        "{}",
        ran.output
    );
    pbs.wait_for_end();
    // What they finished counts.
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_once(&project, &pbs, 2);
}

#[test]
fn a_run_that_is_killed_before_it_knows_the_id_finds_its_jobs() {
    let pbs = require!(Pbs::start(4));
    let executor = pbs.executor_that_finds("batches_per_job = 1\n");
    let waits = "; while [ ! -e killed ]; do sleep 0.02; done";
    let holds = "while [ ! -e $folder/go ]; do sleep 0.02; done;";
    let project = project(2, &then(&executor, true, waits), STAGE, holds);
    let mut first = project.spawn(&["run"]);
    wait_until("both batches run", || runs(&project).len() == 2);
    first.kill().unwrap();
    first.wait().unwrap();
    project.write("killed", "");
    let second = project.spawn(&["run"]);
    wait_until("the id is known", || {
        let files = project.list(".milepost/jobs");
        files.iter().any(|name| name.ends_with("/id"))
    });
    project.write("go", "");
    let second = second.wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(0));
    check_once(&project, &pbs, 2);
}
