//! A run that is killed goes on.

use super::Project;

/// Kills a run of a project at ten moments, each a tenth of its operations on the disk after the one before, runs it again, and
/// checks that it ends with the same result as a run without a kill.
#[track_caller]
pub fn continues_after_kills<T: PartialEq + std::fmt::Debug>(
    project: impl Fn() -> Project,
    made: impl Fn(&Project) -> T,
) {
    let mut whole = project();
    whole.env("MILEPOST_STOP_AT", "unflushed,list=operations.txt");
    let ran = whole.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let all = whole.read("operations.txt").lines().count();
    let wanted = made(&whole);
    for part in 1..=10 {
        let mut project = project();
        project.env(
            "MILEPOST_STOP_AT",
            &format!("{},unflushed", all * part / 11),
        );
        let killed = project.run_unplanned(&[]);
        assert_eq!(killed.code, 134, "{part}: {}", killed.output);
        project.env("MILEPOST_STOP_AT", "unflushed");
        let resumed = project.run_unplanned(&[]);
        assert_eq!(resumed.code, 0, "{part}: {}", resumed.output);
        let done = killed.batches("published");
        assert!(
            resumed.tried().iter().all(|batch| !done.contains(batch)),
            "{part}: {done:?} again: {:?}",
            resumed.tried()
        );
        assert_eq!(made(&project), wanted, "{part}");
    }
}
