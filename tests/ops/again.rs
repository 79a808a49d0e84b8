//! A run on a workspace that is done changes nothing.

use crate::support::Project;
use milepost_engine::run::report::StageStatus;

#[test]
fn a_second_run_does_nothing() {
    let project = Project::names();
    let first = project.run_in_process();
    let seen: Vec<_> = first
        .stages
        .iter()
        .map(|s| (s.stage.as_str(), s.status, s.ran, s.reused))
        .collect();
    assert_eq!(
        seen,
        [
            ("sort", StageStatus::Complete, 3, 0),
            ("count", StageStatus::Complete, 1, 0)
        ]
    );
    let before = project.all_files();
    let second = project.run_in_process();
    let seen: Vec<_> = second
        .stages
        .iter()
        .map(|s| (s.stage.as_str(), s.status, s.ran, s.reused))
        .collect();
    assert_eq!(
        seen,
        [
            ("sort", StageStatus::Complete, 0, 3),
            ("count", StageStatus::Complete, 0, 1)
        ]
    );
    let after = project.all_files();
    let changed: Vec<_> = after
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(*bytes))
        .map(|(p, _)| p)
        .collect();
    // What was young is read once more, and that it is old by then is noted.
    let caches = [
        "workspace/.milepost/glance",
        "workspace/.milepost/stat-cache",
    ];
    assert!(
        changed.iter().all(|path| caches.contains(&path.as_str())),
        "{changed:?}"
    );
}
