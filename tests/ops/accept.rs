//! `accept`: outputs that a person altered, and changes that make no difference.

use crate::support::{NOW, Project};
use milepost::view;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::change::accept::{AcceptOptions, Accepted, accept};
use milepost_engine::ops::inspect::log::{LogOptions, log};
use milepost_engine::ops::inspect::verify::verify;
use milepost_engine::ops::project::OpsError;
use milepost_engine::run::report::StageStatus;

fn wanted(target: &str, changes: &[&str]) -> AcceptOptions {
    AcceptOptions {
        targets: vec![target.to_owned()],
        why: "seen on site".into(),
        who: Some("Ada".into()),
        changes: changes.iter().map(|&change| change.to_owned()).collect(),
        expected: None,
    }
}

fn take(project: &Project, target: &str, changes: &[&str]) -> Result<Accepted, OpsError> {
    accept(&project.request(), &wanted(target, changes))
}

fn refused(project: &Project, target: &str, changes: &[&str]) -> String {
    let before = project.all_files();
    let error = take(project, target, changes).unwrap_err().to_string();
    assert_eq!(
        project.all_files(),
        before,
        "what is refused changes nothing"
    );
    error
}

/// Stage, status, batches that ran and that were reused.
fn run(project: &Project) -> Vec<(String, StageStatus, u64, u64)> {
    let stages = project.run_in_process().stages.into_iter();
    stages
        .map(|stage| (stage.stage, stage.status, stage.ran, stage.reused))
        .collect()
}

fn line(
    stage: &str,
    status: StageStatus,
    ran: u64,
    reused: u64,
) -> (String, StageStatus, u64, u64) {
    (stage.to_owned(), status, ran, reused)
}

#[test]
fn an_altered_output_is_pinned_and_what_follows_is_made_again() {
    let project = Project::names();
    project.run_in_process();
    let path = "workspace/intermediate/list_2.json";
    let old = Digest::of(project.read(path));
    project.edit(path, "Cy", "Cyd");
    let new = Digest::of(project.read(path));
    assert_eq!(run(&project), [line("sort", StageStatus::Modified, 0, 0)]);

    let done = take(&project, "sort", &[]).unwrap();
    assert_eq!(
        view::change::accept::accept(&done),
        format!(
            "pinned   intermediate/list_2.json of sort/list_2 ({}… → {}…)\nwritten  stage_1_complete.json\n",
            old.short(),
            new.short()
        )
    );
    let found = verify(&project.request(), true).unwrap();
    assert_eq!(found.exit_code(), 0, "{}", view::verify::verify(&found));
    let errors = log(
        &project.request(),
        &LogOptions {
            target: Some("sort/list_2".into()),
            limit: Some(1),
            ..LogOptions::default()
        },
    );
    let last = &errors.unwrap().records[0];
    assert_eq!(
        (last.timestamp.to_string().as_str(), last.summary.as_str()),
        (
            NOW,
            format!(
                "sort/list_2: Ada accepted intermediate/list_2.json ({}… → {}…) as modified by hand: seen on site",
                old.short(),
                new.short()
            )
            .as_str()
        )
    );
    assert_eq!(
        run(&project),
        [
            line("sort", StageStatus::Complete, 0, 3),
            line("count", StageStatus::Complete, 1, 0)
        ]
    );
    assert_eq!(
        run(&project),
        [
            line("sort", StageStatus::Complete, 0, 3),
            line("count", StageStatus::Complete, 0, 1)
        ]
    );
    assert_eq!(take(&project, "sort", &[]).unwrap(), Accepted::default());

    // What it was made from changes: it is the person's turn again.
    project.edit("workspace/inputs/list_2.json", "Cy", "Cid");
    assert_eq!(run(&project), [line("sort", StageStatus::Modified, 0, 0)]);
    let done = take(&project, "sort/list_2", &[]).unwrap();
    assert_eq!((done.pinned.len(), done.adopted.len()), (0, 1));
    assert_eq!(
        run(&project),
        [
            line("sort", StageStatus::Complete, 0, 3),
            line("count", StageStatus::Complete, 0, 1)
        ]
    );
}

#[test]
fn what_does_not_hold_is_refused_with_everything_that_is_wrong() {
    let project = Project::names();
    project.run_in_process();
    project.edit(
        "workspace/intermediate/list_2.json",
        "\"name\": \"Cy\"",
        "\"name\": \"\"",
    );
    project.edit("workspace/intermediate/list_10.json", "\"e\"", "\"x\"");
    assert_eq!(
        refused(&project, "sort", &[]),
        "nothing was accepted:\n  \
         sort/list_2: NO_NAME: `all(.sorted.people[]; .name != \"\")` is not true\n  \
         sort/list_10: CONSERVE: 2 went in, 2 came out: 1 lost: e; 1 invented: x (.list.data.people[].id → .sorted.people[].id)\n    \
         lost: e\n    invented: x"
    );
    assert_eq!(
        refused(&project, "sort/list_3", &[]),
        "nothing was accepted:\n  stage `sort` has no batch `list_3`"
    );
    std::fs::remove_file(project.at("workspace/intermediate/list_2.json")).unwrap();
    assert_eq!(
        take(&project, "sort/list_2", &[]).unwrap(),
        Accepted::default()
    );
}

#[test]
fn a_checkpoint_edited_by_hand_is_written_again_from_what_is_known() {
    let project = Project::names();
    project.run_in_process();
    let written = project.read("workspace/stage_1_complete.json");
    project.edit(
        "workspace/stage_1_complete.json",
        "\"element_count\": 5",
        "\"element_count\": 6",
    );
    assert_eq!(run(&project), [line("sort", StageStatus::Modified, 0, 0)]);
    let done = take(&project, "sort", &[]).unwrap();
    assert_eq!(done.checkpoints, ["stage_1_complete.json"]);
    let without_run = |text: &str| -> serde_json::Value {
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["run_id"] = serde_json::Value::Null;
        value
    };
    let again = project.read("workspace/stage_1_complete.json");
    assert_eq!(without_run(&again), without_run(&written));
    assert_eq!(
        run(&project),
        [
            line("sort", StageStatus::Complete, 0, 3),
            line("count", StageStatus::Complete, 0, 1)
        ]
    );
}

#[test]
fn a_change_that_makes_no_difference_is_adopted_without_a_run() {
    let project = Project::names();
    project.run_in_process();
    project.edit("stages/1_sort.toml", "sort_by(.id)[]", "sort_by(.id) | .[]");
    let done = take(&project, "sort", &["step"]).unwrap();
    let text = view::change::accept::accept(&done);
    assert!(
        text.starts_with("adopted  sort/list_1: jq changed: "),
        "{text}"
    );
    assert_eq!(
        (
            done.adopted.len(),
            done.pinned.len(),
            done.checkpoints.len()
        ),
        (3, 0, 1)
    );
    assert_eq!(
        run(&project),
        [
            line("sort", StageStatus::Complete, 0, 3),
            line("count", StageStatus::Complete, 0, 1)
        ]
    );

    project.edit("milepost.toml", "hello", "good day");
    project.edit("workspace/inputs/list_2.json", "Cy", "Cyd");
    assert_eq!(
        refused(&project, "sort", &["param"]),
        "nothing was accepted:\n  sort/list_2: input inputs/list_2.json changed too, and `--change` does not name it"
    );
    assert_eq!(
        take(&project, "sort/list_1", &["param greeting"])
            .unwrap()
            .adopted
            .len(),
        1
    );
    assert_eq!(
        run(&project),
        [
            line("sort", StageStatus::Complete, 2, 1),
            line("count", StageStatus::Complete, 1, 0)
        ]
    );
    assert!(
        refused(&project, "sort", &["schema"])
            .starts_with("`--change schema`: after such a change, a run validates outputs again")
    );
    assert!(
        refused(&project, "sort", &["prose"])
            .starts_with("`--change prose`: expected a kind of fact")
    );
}

#[test]
fn what_nobody_says_why_of_is_refused() {
    let project = Project::names();
    let bare = AcceptOptions {
        why: " ".into(),
        ..wanted("sort", &[])
    };
    let error = accept(&project.request(), &bare).unwrap_err();
    assert_eq!(
        error.to_string(),
        "give a reason with `--why TEXT`: the journal records it"
    );
    let bare = AcceptOptions {
        targets: vec![],
        ..wanted("sort", &[])
    };
    let error = accept(&project.request(), &bare).unwrap_err();
    assert_eq!(
        error.to_string(),
        "name what to accept: `milepost accept STAGE[/BATCH] --why TEXT`"
    );
    assert_eq!(
        refused(&project, "sort", &[]),
        "this workspace has no run: there is nothing to accept"
    );
}
