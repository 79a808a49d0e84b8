//! A crash at every operation of the disk in a first run, of the main pipeline and of one with commands; and in the recovery.

use super::project::operations;
use super::sweep::{at_each, in_parallel, is_every, setting, step, stops};
use crate::support::{Files, Project};

const RUN: &[&str] = &["run"];
const MAIN: &[&str] = &["run", "--set", "batch_size=3"];

/// Checks that a crashed workspace can be read and holds. The commands that read run after every fifth crash; the library reads
/// after each.
fn look(project: &Project, expected: &Files, at: usize) {
    project.assert_truth(&[expected], &Files::new());
    if is_every(at, 5) {
        project.query(&["status"]);
        project.query(&["log"]);
    }
}

/// Crashes a first run before and in the middle of its operations, and resumes it.
fn resumes(make: fn() -> Project, words: &[&str], sample: usize) {
    let whole = make();
    let operations = operations(&whole, words);
    let expected = whole.outputs();
    whole.assert_complete(&expected);
    whole.assert_verified();
    whole.assert_at_rest(words);
    assert!(operations.len() > 100, "{operations:#?}");
    let stops = stops(&operations, sample);
    at_each(&operations, &stops, |stop| {
        let project = make();
        let ended = project.run_on_disk(words, &stop.setting);
        assert!(ended.code == 0 || ended.code == 134, "{ended:?}");
        look(&project, &expected, stop.at);
        let (finished, ran) = (project.finished(), project.ran());
        project.complete(words);
        project.assert_complete(&expected);
        if is_every(stop.at, 5) {
            project.assert_verified();
        }
        for again in &project.ran()[ran.len()..] {
            assert!(
                !finished.contains(again),
                "{again} was finished and ran again"
            );
        }
    });
}

#[test]
fn the_main_pipeline_is_resumed_from_every_operation() {
    resumes(Project::six, MAIN, 48);
}

#[test]
fn a_pipeline_with_commands_is_resumed_from_every_operation() {
    resumes(Project::small, RUN, 64);
}

/// `MILEPOST_TEST_PAIRS=1` stops the second run at every operation after a crash of the first at every operation.
#[test]
fn a_recovery_that_crashes_is_recovered() {
    let coarse = setting("MILEPOST_TEST_PAIRS", step(29));
    let whole = Project::small();
    let operations = operations(&whole, RUN);
    let expected = whole.outputs();
    let firsts = stops(&operations, operations.len() / coarse);
    in_parallel(&firsts, |first| {
        let crashed = Project::small();
        crashed.run_on_disk(RUN, &first.setting);
        for second in (1..).step_by(coarse) {
            let project = crashed.copy();
            let ended = project.run_on_disk(RUN, &format!("{second},unflushed"));
            look(&project, &expected, second);
            project.complete(RUN);
            project.assert_complete(&expected);
            if ended.code == 0 {
                break;
            }
        }
    });
}
