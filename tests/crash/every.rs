//! A crash at every operation of the disk in a first run, of the main pipeline and of one with commands; and in the recovery.

use super::project::{Files, Project, operations, stops};
use super::{in_parallel, setting};

const RUN: &[&str] = &["run"];
const MAIN: &[&str] = &["run", "--set", "batch_size=3"];

/// What is left by a crash can be read, and holds. The programs are asked after every `MILEPOST_TEST_READS`th crash; what they
/// read with is called after each.
fn look(project: &Project, expected: &Files, at: usize) {
    project.assert_truth(&[expected], &Files::new());
    if at.is_multiple_of(setting("MILEPOST_TEST_READS", 5)) {
        project.read(&["status"]);
        project.read(&["log"]);
    }
}

/// Crashes a first run before and in the middle of every operation, resumes it, and looks each time.
fn resumes(make: fn() -> Project, words: &[&str]) {
    let whole = make();
    let operations = operations(&whole, words);
    let expected = whole.made();
    whole.assert_complete(&expected);
    whole.assert_verified();
    whole.assert_at_rest(words);
    assert!(operations.len() > 100, "{operations:#?}");
    let stops: Vec<_> = stops(&operations, 1, 0).into_iter().enumerate().collect();
    in_parallel(&stops, |(at, setting)| {
        let project = make();
        let ended = project.run(words, setting);
        assert!(
            ended.code == Some(0) || ended.signal == Some(6),
            "{ended:?}"
        );
        look(&project, &expected, *at);
        let (finished, ran) = (project.finished(), project.ran());
        project.complete(words);
        project.assert_complete(&expected);
        if at.is_multiple_of(super::setting("MILEPOST_TEST_READS", 5)) {
            project.assert_verified();
        }
        for again in &project.ran()[ran.len()..] {
            assert!(
                !finished.contains(again),
                "{again} was finished and ran again"
            );
        }
    });
    eprintln!("{} operations, {} crashes", operations.len(), stops.len());
}

#[test]
fn the_main_pipeline_is_resumed_from_every_operation() {
    resumes(Project::six, MAIN);
}

#[test]
fn a_pipeline_with_commands_is_resumed_from_every_operation() {
    resumes(Project::small, RUN);
}

/// `MILEPOST_TEST_PAIRS=1` stops the second run at every operation after a crash of the first at every operation.
#[test]
fn a_recovery_that_crashes_is_recovered() {
    let coarse = setting("MILEPOST_TEST_PAIRS", 19);
    let whole = Project::small();
    let operations = operations(&whole, RUN);
    let expected = whole.made();
    let firsts = stops(&operations, coarse, 0);
    in_parallel(&firsts, |first| {
        let crashed = Project::small();
        crashed.run(RUN, first);
        for second in (1..).step_by(coarse) {
            let project = crashed.copy();
            let ended = project.run(RUN, &format!("{second},unflushed"));
            look(&project, &expected, second);
            project.complete(RUN);
            project.assert_complete(&expected);
            if ended.code == Some(0) {
                break;
            }
        }
    });
}
