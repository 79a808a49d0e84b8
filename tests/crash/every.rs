//! A crash at every operation of the disk in a first run.

use super::in_parallel;
use super::project::{Files, Project, operations, stops};

const RUN: &[&str] = &["run"];

#[test]
fn a_first_run_is_resumed_from_every_operation() {
    let whole = Project::small();
    let operations = operations(&whole, RUN);
    let expected = whole.made();
    whole.assert_complete(&expected);
    assert!(operations.len() > 100, "{operations:#?}");
    let stops = stops(&operations, 1, 0);
    let started = std::time::Instant::now();
    in_parallel(&stops, |setting| {
        let project = Project::small();
        let ended = project.run(RUN, setting);
        assert!(
            ended.code == Some(0) || ended.signal == Some(6),
            "{ended:?}"
        );
        project.assert_truth(&[&expected], &Files::new());
        project.complete(RUN);
        project.assert_complete(&expected);
    });
    eprintln!(
        "{} operations, {} crashes in {:?}",
        operations.len(),
        stops.len(),
        started.elapsed()
    );
}
