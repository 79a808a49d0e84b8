//! A run while it goes on: batches that overlap, the wish to stop, and what a killed run leaves.

use super::house::{House, code};
use super::meeting::{go, here, lives, meeting, start};
use std::process::Command;

#[test]
fn with_two_jobs_two_batches_are_at_work_together() {
    let house = meeting();
    let run = start(&house, &["run", "--jobs", "2"]);
    // Both are there before either may go on.
    let both = [here(&house, 1), here(&house, 2)];
    go(&house, 2);
    go(&house, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", super::house::said(&output));
    assert!(both.iter().all(|process| !lives(*process)));
    assert_eq!(house.list("outputs"), ["1.txt", "2.txt"]);
}

#[test]
fn ctrl_c_ends_what_runs_and_the_next_run_goes_on() {
    let house = meeting();
    let run = start(&house, &["run"]);
    here(&house, 1);
    go(&house, 1);
    let child = here(&house, 2);
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", super::house::said(&output));
    assert!(!lives(child), "the child of the batch lives on");
    assert_eq!(house.list("outputs"), ["1.txt"]);
    assert_eq!(house.json("workspace/meet_progress.json")["status"], "held");
    assert!(!house.exists("workspace/stage_1_complete.json"));

    let again = start(&house, &["run"]);
    here(&house, 2);
    go(&house, 2);
    assert_eq!(code(&again.wait_with_output().unwrap()), 0);
    assert_eq!(house.list("outputs"), ["1.txt", "2.txt"]);
    let tried = house
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
        let house = meeting();
        let mut run = start(&house, &["run", "meet/1"]);
        let child = here(&house, 1);
        run.kill().unwrap();
        run.wait().unwrap();
        assert!(lives(child), "it was the runner alone that was killed");
        let segment = house.list(".milepost/journal").pop().unwrap();
        let segment = format!("workspace/.milepost/journal/{segment}");
        let kept: String = house
            .read(&segment)
            .split_inclusive('\n')
            .take_while(|line| !line.contains(cut))
            .map(str::to_owned)
            .collect();
        assert!(kept.contains("\"stage_started\""), "{kept}");
        house.write(&segment, kept);
        let again = start(&house, &["run", "meet/1"]);
        here(&house, 1);
        assert!(
            !lives(child),
            "the next run ends survivors before it starts: {cut}"
        );
        go(&house, 1);
        assert_eq!(code(&again.wait_with_output().unwrap()), 3, "{cut}");
    }
}

#[test]
fn the_batch_at_work_is_told_before_any_is_done() {
    let mut house = House::new(&[
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
    let progress = house.at("workspace/slow_progress.json");
    house.env("PROGRESS", &progress.display().to_string());
    assert_eq!(house.run(&["slow/1"]).code, 3);
    let mut seen = house.json("workspace/outputs/1.json");
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
