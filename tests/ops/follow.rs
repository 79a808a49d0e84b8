//! `Follower`: the records of a workspace as runs append them.

use crate::support::Project;
use milepost_engine::ops::inspect::follow::{Follower, Position};
use milepost_engine::ops::inspect::log::{LogOptions, log};
use milepost_engine::ops::project::OpsError;

#[test]
fn returns_the_records_of_each_run_once() {
    let project = Project::names();
    let request = project.request();
    let mut follower = Follower::at_end(&request).unwrap();
    assert_eq!(follower.position(), Position::START);
    assert_eq!(follower.read().unwrap(), []);
    assert!(!project.exists("workspace/.milepost"));

    let mut found = Vec::new();
    for greeting in ["hello", "good day"] {
        project.write(
            "milepost.toml",
            format!("name = \"names\"\n\n[params]\ngreeting = \"{greeting}\"\n"),
        );
        project.run_in_process();
        let records = follower.read().unwrap();
        assert!(!records.is_empty());
        found.extend(records);
    }
    let records = log(&request, &LogOptions::default()).unwrap().records;
    assert!(found.iter().map(|(_, record)| record).eq(&records));

    let middle = found.len() / 2;
    let mut again = Follower::after(&request, found[middle].0).unwrap();
    assert_eq!(again.read().unwrap(), found[middle + 1..]);
    let error = Follower::after(&request, "9:1".parse().unwrap()).unwrap_err();
    assert!(matches!(error, OpsError::Journal(_)), "{error}");
}
