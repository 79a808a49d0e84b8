//! The progress file counts what is published, while slow batches run.

use super::gated::{gated, release, wait_for_batch};
use crate::support::{exit_code, printed};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn a_published_batch_is_counted_while_a_slow_one_runs() {
    let project = gated();
    let run = project.spawn(&["run", "--jobs", "2"]);
    wait_for_batch(&project, 1);
    wait_for_batch(&project, 2);
    release(&project, 1);
    // No batch begins or ends from here on until the test says so: the dispatcher has to wake up by itself.
    let end = Instant::now() + Duration::from_secs(30);
    let shown = loop {
        let text = std::fs::read(project.at("workspace/meet_progress.json")).unwrap_or_default();
        let progress: Value = serde_json::from_slice(&text).unwrap_or_default();
        let shown = (
            progress["completed_batches"].clone(),
            progress["current_batch"].clone(),
            progress["status"].clone(),
        );
        if shown.0 == json!([1]) || Instant::now() > end {
            break shown;
        }
        std::thread::yield_now();
    };
    release(&project, 2);
    let output = run.wait_with_output().unwrap();
    assert_eq!(shown, (json!([1]), json!(2), json!("in_progress")));
    assert_eq!(exit_code(&output), 0, "{}", printed(&output));
    let last = project.json("workspace/meet_progress.json");
    assert_eq!(
        (&last["completed_batches"], &last["status"]),
        (&json!([1, 2]), &json!("complete"))
    );
}
