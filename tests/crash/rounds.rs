//! Killed inside `[refine]`, a run goes on inside: rounds that were finished are not done again, and the end is the same.

use super::project::operations;
use super::sweep::{at_each, stops};
use crate::support::{Files, Project};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RUN: &[&str] = &["run"];

/// Two letters, at once, with three rounds each. A program says outside the workspace that it ran, and leaves a file for itself.
const DECLARED: &[(&str, &str)] = &[
    ("milepost.toml", "name = \"letters\"\n"),
    (
        "stages/1_write.toml",
        r#"
[each.letter]
path = "inputs/letter_*.json"

[refine]
until = '.review.verdict != "needs_revision"'
max_iterations = 4

[[step]]
command = ["sh", "-c", 'echo "$1 $2" >> ../../../../../../ran; echo "$2" >> notes; cat notes > "$3"', "sh", "{{ letter.stem }}", "{{ iteration }}", "{{ paths.draft }}"]
out = "draft"

[[step]]
jq = '{verdict: (if $iteration < 3 then "needs_revision" else .letter.data.verdict end), score: ($iteration / 4), feedback: "round \($iteration) after \(.previous.review.feedback)"}'
out = "review"

[[step]]
jq = '{first: $iteration}'
out = "once"
when = ".iteration == 1"

[[step]]
jq = '$iteration'
out = "seldom"
when = ".iteration == 1 or .iteration == 2"

[[step]]
jq = '(.previous.history // []) + [{iteration: $iteration, score: .review.score, feedback: .review.feedback, once: $once.first, seldom: $seldom}]'
out = "history"

[outputs]
draft = "intermediate/drafts/{{ letter.stem }}_{{ iteration }}.txt"
seldom = { path = "intermediate/seldom/{{ letter.stem }}_{{ iteration }}.json", schema = false }
review = { path = "intermediate/reviews/{{ letter.stem }}.json", schema = false }
history = { path = "intermediate/histories/{{ letter.stem }}.json", schema = false }

[policy]
concurrency = 2
"#,
    ),
    (
        "stages/2_join.toml",
        r#"
verdict = 'all(.reviews[]; .verdict != "rejected")'

[inputs]
reviews = "intermediate/reviews/*.json"

[step]
jq = '[.reviews[].verdict]'

[outputs]
verdicts = { path = "outputs/verdicts.json", schema = false }
"#,
    ),
];

impl Project {
    /// Two letters that are written in rounds.
    pub fn rounds() -> Self {
        let project = Self::empty();
        for (path, text) in DECLARED {
            project.write(path, text);
        }
        for (number, verdict) in [(1, "approved_plan"), (2, "capacity_limited_plan")] {
            let path = format!("workspace/inputs/letter_{number}.json");
            project.write(&path, json!({ "verdict": verdict }).to_string());
        }
        project
    }

    /// The rounds of batches that are kept: `letter_1 2`.
    fn kept(&self) -> BTreeSet<String> {
        let files = self.workspace_files(&[".milepost/rounds/write"]);
        let records = files.keys().filter_map(|path| {
            let path = path.strip_prefix(".milepost/rounds/write/")?;
            let (batch, record) = path.strip_suffix(".json")?.split_once('/')?;
            let is_whole = !record.starts_with('.');
            is_whole.then(|| format!("{batch} {record}"))
        });
        records.collect()
    }
}

#[test]
fn finished_rounds_are_not_done_again() {
    let whole = Project::rounds();
    let operations = operations(&whole, RUN);
    let expected = whole.outputs();
    let text = |path: &str| String::from_utf8(expected[path].clone()).unwrap();
    let read = |path: &str| serde_json::from_str::<Value>(&text(path)).unwrap();
    assert_eq!(
        read("outputs/verdicts.json"),
        json!(["approved_plan", "capacity_limited_plan"])
    );
    assert_eq!(text("intermediate/drafts/letter_1_3.txt"), "1\n2\n3\n");
    let history = read("intermediate/histories/letter_1.json");
    assert_eq!(
        history[2],
        json!({"iteration": 3, "score": 0.75, "feedback": "round 3 after round 2 after round 1 after null", "once": 1, "seldom": 2})
    );
    assert_eq!(whole.ran().len(), 6);
    assert_eq!(whole.kept(), BTreeSet::new());
    whole.assert_complete(&expected);
    let stops = stops(&operations, 40);
    let resumed = std::sync::atomic::AtomicUsize::new(0);
    let finished = std::sync::atomic::AtomicUsize::new(0);
    at_each(&operations, &stops, |stop| {
        let project = Project::rounds();
        project.run_on_disk(RUN, &stop.setting);
        project.assert_truth(&[&expected], &Files::new());
        let (kept, ran) = (project.kept(), project.ran().len());
        // The recovery is killed as well, now and then.
        if stop.at.is_multiple_of(2) {
            project.run_on_disk(RUN, "40,unflushed");
        }
        project.complete(RUN);
        project.assert_complete(&expected);
        assert_eq!(project.kept(), BTreeSet::new());
        for again in &project.ran()[ran..] {
            assert!(!kept.contains(again), "{again} was finished and ran again");
        }
        let is_last = kept.iter().any(|round| round.ends_with(" 3"));
        finished.fetch_add(usize::from(is_last), std::sync::atomic::Ordering::Relaxed);
        resumed.fetch_add(
            usize::from(!kept.is_empty()),
            std::sync::atomic::Ordering::Relaxed,
        );
    });
    let finished = finished.into_inner();
    assert!(finished > 0, "the last iteration was never kept");
    let resumed = resumed.into_inner();
    assert!(resumed > stops.len() / 10, "{resumed} of {}", stops.len());
}
