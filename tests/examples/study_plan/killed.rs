//! Killed at ten moments from its beginning to its end, a run of `examples/study-plan` goes on, and ends with the same plan.

use super::rounds;
use crate::support::{Project, continues_after_kills};
use std::collections::BTreeMap;

/// The example, run at a fixed time: the calendar says when it was written.
fn example() -> Project {
    let mut project = super::example();
    project.env("SOURCE_DATE_EPOCH", "1772355600");
    project
}

/// What was made, as text without the session's id.
fn made(project: &Project) -> BTreeMap<String, String> {
    let session =
        project.json("workspace/intermediate/handoffs/1_coordinator_to_ingestion.json")["session_id"]
            .as_str()
            .unwrap()
            .to_owned();
    project
        .output_digests()
        .into_keys()
        .map(|path| {
            let bytes = std::fs::read(project.at("workspace").join(&path)).unwrap();
            (
                path,
                String::from_utf8_lossy(&bytes).replace(&session, "SESSION"),
            )
        })
        .collect()
}

/// How many operations on the disk a run does, and what each is.
fn operations(project: &mut Project, arguments: &[&str]) -> Vec<String> {
    project.env("MILEPOST_STOP_AT", "unflushed,list=operations.txt");
    assert_eq!(project.run_unplanned(arguments).code, 0);
    project.env("MILEPOST_STOP_AT", "unflushed");
    project
        .read("operations.txt")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn killed_at_ten_moments_it_continues_to_the_same_plan() {
    continues_after_kills(example, made);
}

#[test]
fn killed_between_two_rounds_it_continues_with_the_second() {
    let today = ["--set", "today=2027-02-20"];
    let until = ["--until", "dispatch", "--set", "today=2027-02-20"];
    let mut whole = example();
    assert_eq!(whole.run_unplanned(&until).code, 0);
    let operations = operations(&mut whole, &today);
    let kept = operations
        .iter()
        .position(|line| line.starts_with("rename") && line.ends_with("rounds/plan/only/1.json"));
    let mut project = example();
    assert_eq!(project.run_unplanned(&until).code, 0);
    project.env(
        "MILEPOST_STOP_AT",
        &format!("{},unflushed", kept.unwrap() + 4),
    );
    assert_eq!(project.run_unplanned(&today).code, 134);
    project.env("MILEPOST_STOP_AT", "unflushed");
    let resumed = project.run_unplanned(&today);
    resumed.expect(0, &["approve", "export", "plan"]);
    assert_eq!(rounds(&resumed), [(2, "approved_plan", vec![])]);
    assert_eq!(made(&project), made(&whole));
}
