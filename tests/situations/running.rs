//! A run while it goes on: batches that overlap, the wish to stop, and what a killed run leaves.

use super::gated::{gated, release, wait_for_batch};
use crate::support::{Project, exit_code, is_alive};
use std::process::Command;

#[test]
fn with_two_jobs_two_batches_are_at_work_together() {
    let project = gated();
    let run = project.spawn(&["run", "--jobs", "2"]);
    // Both are there before either may go on.
    let both = [wait_for_batch(&project, 1), wait_for_batch(&project, 2)];
    release(&project, 2);
    release(&project, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        exit_code(&output),
        0,
        "{}",
        crate::support::printed(&output)
    );
    assert!(both.iter().all(|process| !is_alive(*process)));
    assert_eq!(project.list("outputs"), ["1.txt", "2.txt"]);
}

#[test]
fn ctrl_c_ends_what_runs_and_the_next_run_continues() {
    let project = gated();
    let run = project.spawn(&["run"]);
    wait_for_batch(&project, 1);
    release(&project, 1);
    let child = wait_for_batch(&project, 2);
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        exit_code(&output),
        130,
        "{}",
        crate::support::printed(&output)
    );
    assert!(!is_alive(child), "the child of the batch lives on");
    assert_eq!(project.list("outputs"), ["1.txt"]);
    assert_eq!(
        project.json("workspace/meet_progress.json")["status"],
        "held"
    );
    assert!(!project.exists("workspace/stage_1_complete.json"));

    let again = project.spawn(&["run"]);
    wait_for_batch(&project, 2);
    release(&project, 2);
    assert_eq!(exit_code(&again.wait_with_output().unwrap()), 0);
    assert_eq!(project.list("outputs"), ["1.txt", "2.txt"]);
    let tried = project
        .records()
        .iter()
        .filter(|record| record["kind"] == "attempt_started" && record["data"]["batch"] == "1")
        .count();
    assert_eq!(tried, 1, "what was finished is not done again");
}

#[test]
fn a_program_that_no_record_names_is_ended_by_the_run_that_it_belongs_to() {
    // As if the runner was killed before the record of the program was written, or before that of its attempt.
    for cut in ["\"child_started\"", "\"attempt_started\""] {
        let project = gated();
        let mut run = project.spawn(&["run", "meet/1"]);
        let child = wait_for_batch(&project, 1);
        run.kill().unwrap();
        run.wait().unwrap();
        assert!(is_alive(child), "it was the runner alone that was killed");
        let segment = project.list(".milepost/journal").pop().unwrap();
        let segment = format!("workspace/.milepost/journal/{segment}");
        let kept: String = project
            .read(&segment)
            .split_inclusive('\n')
            .take_while(|line| !line.contains(cut))
            .map(str::to_owned)
            .collect();
        assert!(kept.contains("\"stage_started\""), "{kept}");
        project.write(&segment, kept);
        let again = project.spawn(&["run", "meet/1"]);
        wait_for_batch(&project, 1);
        assert!(
            !is_alive(child),
            "the next run ends survivors before it starts: {cut}"
        );
        release(&project, 1);
        assert_eq!(exit_code(&again.wait_with_output().unwrap()), 3, "{cut}");
    }
}

#[test]
fn the_batch_at_work_is_told_before_any_is_done() {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"slow\"\n\n[env]\nPROGRESS = \"\"\n",
        ),
        (
            "stages/1_slow.toml",
            r#"
[each.n]
count = 2

[step]
command = ["sh", "-c", 'until grep -qs "current_batch.: [0-9]" "$PROGRESS"; do sleep 0.02; done; cp "$PROGRESS" "$1"', "sh", "{{ paths.seen }}"]
env = ["PROGRESS"]
timeout = "60s"

[outputs]
seen = { path = "outputs/{{ n }}.json", schema = false }
"#,
        ),
    ]);
    let progress = project.at("workspace/slow_progress.json");
    project.env("PROGRESS", &progress.display().to_string());
    assert_eq!(project.run(&["slow/1"]).code, 3);
    let mut seen = project.json("workspace/outputs/1.json");
    let of_this_run =
        ["run_id", "pid", "updated", "checksum"].map(|key| seen[key].take().is_null());
    assert_eq!(of_this_run, [false; 4]);
    assert_eq!(
        seen,
        serde_json::json!({
            "stage": "slow", "total_batches": 2, "completed_batches": [], "current_batch": 1, "failed_batches": [],
            "status": "in_progress", "run_id": null, "pid": null, "updated": null, "checksum": null,
        })
    );
}
