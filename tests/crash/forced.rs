//! Killed anywhere, a run with `--force` is finished by the next run: each selected batch is rebuilt, and none twice.

use super::project::{assert_same, operations};
use super::sweep::{at_each, stops};
use crate::support::{Files, Project};
use milepost_core::model::event::Event;
use std::collections::{BTreeMap, BTreeSet};

const FORCE: &[&str] = &["run", "--force", "copy", "join"];
const RUN: &[&str] = &["run"];

/// Four batches whose output no fingerprint tells: it is what the file `generation` outside the workspace says. The program notes
/// outside that it ran.
const DECLARED: &[(&str, &str)] = &[
    ("milepost.toml", "name = \"forced\"\n"),
    (
        "stages/1_copy.toml",
        r#"
marker = "intermediate/out/{{ batch.stem }}.done"

[each.batch]
path = "inputs/batch_*.json"

[step]
command = ["sh", "-c", 'echo "$1" >> ../../../../../../ran; cat ../../../../../../generation > "$2"', "sh", "{{ batch.path }}", "{{ paths.copy }}"]

[outputs]
copy = { path = "intermediate/out/{{ batch.stem }}.json", schema = false }

[policy]
concurrency = 2
"#,
    ),
    (
        "stages/2_join.toml",
        r#"
[inputs]
parts = "intermediate/out/*.json"

[step]
jq = '[.parts[]]'

[outputs]
all = { path = "outputs/all.json", schema = false }
"#,
    ),
];

/// How often each batch was published since `--force` was recorded; `None`: it was not.
fn published(project: &Project) -> Option<BTreeMap<String, u32>> {
    let mut counts: Option<BTreeMap<String, u32>> = None;
    for record in project.journal() {
        match (record.event, &mut counts) {
            (Event::Forced { .. }, _) => {
                counts.get_or_insert_default();
            }
            (Event::Published { stage, record, .. }, Some(counts)) => {
                let name = format!("{stage}/{}", record.key);
                *counts.entry(name).or_default() += 1;
            }
            (Event::Lost { stage, batch, .. }, Some(counts)) => {
                counts.remove(&format!("{stage}/{batch}"));
            }
            _ => {}
        }
    }
    counts
}

#[test]
fn a_forced_run_that_is_killed_is_finished_by_the_next_run() {
    let made = Project::empty();
    for (path, text) in DECLARED {
        made.write(path, text);
    }
    for number in 1..=4 {
        let path = format!("workspace/inputs/batch_{number}.json");
        made.write(&path, format!("{{\"n\": {number}}}"));
    }
    made.write("generation", "\"one\"\n");
    made.complete(RUN);
    let before = made.outputs();
    made.write("generation", "\"two\"\n");
    let whole = made.copy();
    let operations = operations(&whole, FORCE);
    let expected = whole.outputs();
    assert_ne!(before, expected);
    let all: BTreeMap<String, u32> = (1..=4)
        .map(|number| (format!("copy/batch_{number}"), 1))
        .chain([("join/".to_owned(), 1)])
        .collect();
    assert_eq!(published(&whole), Some(all.clone()));

    let resumed = std::sync::atomic::AtomicUsize::new(0);
    let stops = stops(&operations, 32);
    at_each(&operations, &stops, |stop| {
        let project = made.copy();
        project.run_on_disk(FORCE, &stop.setting);
        project.assert_truth(&[&before, &expected], &Files::new());
        let Some(done) = published(&project) else {
            // The run had not begun to change anything.
            assert_same(&project.outputs(), &before);
            return;
        };
        let done: BTreeSet<String> = done.into_keys().collect();
        let ran = project.ran().len();
        // The recovery is killed as well, now and then.
        if stop.at.is_multiple_of(2) {
            project.run_on_disk(RUN, "25,unflushed");
        }
        project.complete(RUN);
        assert_same(&project.outputs(), &expected);
        assert_eq!(
            published(&project),
            Some(all.clone()),
            "each batch is rebuilt once"
        );
        for again in &project.ran()[ran..] {
            let name = format!("copy/{}", again.trim_end_matches(".json"));
            assert!(!done.contains(&name), "{name} was rebuilt and ran again");
        }
        assert_eq!(project.state().forced, Vec::new());
        project.assert_at_rest(RUN);
        project.assert_verified();
        let is_inside = done.len() < all.len();
        resumed.fetch_add(usize::from(is_inside), std::sync::atomic::Ordering::Relaxed);
    });
    let resumed = resumed.into_inner();
    assert!(resumed > stops.len() / 4, "{resumed} of {}", stops.len());
}
