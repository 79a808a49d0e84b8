//! A crash in a second run that takes in a change: resumed, it ends as if nobody had interrupted it.

use super::project::operations;
use super::sweep::{at_each, is_every, stops};
use crate::support::{Files, Project};

/// What is changed between two runs, and how the second is asked for.
struct Change {
    name: &'static str,
    make: fn(&Project),
    words: &'static [&'static str],
    /// Whether batches may be made again from the same facts.
    again: bool,
    /// Whether the run before the change had nothing to do, and the next would only check its notes.
    settled: bool,
}

const RUN: &[&str] = &["run"];

/// The crashes of a sample, in each test.
const SAMPLE: usize = 24;

fn change(name: &'static str, make: fn(&Project)) -> Change {
    Change {
        name,
        make,
        words: RUN,
        again: false,
        settled: false,
    }
}

/// Runs once, changes something, and crashes the second run at operations, and then its recovery.
fn resumes(change: &Change) {
    let mut base = Project::small();
    if change.settled {
        base = base.old();
    }
    base.complete(RUN);
    let before = base.outputs();
    let copy = || {
        let project = base.copy();
        if change.settled {
            project.complete(RUN);
            assert!(project.at("workspace/.milepost/glance").exists());
        }
        project
    };
    let whole = copy();
    (change.make)(&whole);
    let altered = by_hand(&whole, &before);
    let operations = operations(&whole, change.words);
    let after = whole.outputs();
    whole.assert_checkpoints(&Files::new());
    whole.assert_at_rest(RUN);
    let stops = stops(&operations, SAMPLE);
    eprintln!("change: {}", change.name);
    at_each(&operations, &stops, |stop| {
        let project = copy();
        (change.make)(&project);
        project.run_on_disk(change.words, &stop.setting);
        project.assert_truth(&[&before, &altered, &after], &altered);
        assert!(keeps(&project, &altered), "what a person altered is gone");
        // The recovery crashes as well, here and there.
        if is_every(stop.at, 5) {
            project.run_on_disk(change.words, &format!("{},unflushed", stop.at % 40 + 1));
            project.assert_truth(&[&before, &altered, &after], &altered);
        }
        project.complete(change.words);
        if change.again {
            project.assert_done(&after);
        } else {
            project.assert_complete(&after);
        }
        if is_every(stop.at, 5) {
            project.assert_verified();
        }
        assert!(keeps(&project, &altered), "what a person altered is gone");
    });
}

/// What a person wrote over.
fn by_hand(project: &Project, before: &Files) -> Files {
    let mut files = project.outputs();
    files.retain(|path, bytes| before.get(path) != Some(bytes));
    files
}

/// Whether everything that a person altered is still somewhere.
fn keeps(project: &Project, altered: &Files) -> bool {
    let all = project.workspace_files(&["intermediate", "outputs", ".milepost/quarantine"]);
    let mut altered = altered.values();
    altered.all(|bytes| all.values().any(|there| there == bytes))
}

#[test]
fn an_input_changed() {
    resumes(&change("changed", |project| project.input(2, "IfcDoor")));
}

#[test]
fn an_input_deleted() {
    resumes(&change("deleted", |project| {
        project.remove("workspace/inputs/batch_2.json");
    }));
}

#[test]
fn an_input_added() {
    resumes(&change("added", |project| project.input(5, "IfcSlab")));
}

#[test]
fn fewer_batches_of_a_split() {
    resumes(&change("fewer", |project| {
        project.remove("workspace/inputs/batch_1.json");
        project.remove("workspace/inputs/batch_2.json");
        project.remove("workspace/inputs/batch_4.json");
    }));
}

#[test]
fn a_schema_changed() {
    resumes(&change("schema", |project| {
        project.write("schemas/copy.schema.json", r#"{"required": ["items"]}"#);
    }));
}

#[test]
fn a_stage_renamed() {
    resumes(&change("renamed", |project| {
        project.rename("stages/1_copy.toml", "stages/1_take.toml");
    }));
}

#[test]
fn a_stage_removed() {
    resumes(&change("removed", |project| {
        project.remove("stages/5_join.toml");
    }));
}

#[test]
fn stages_renumbered() {
    resumes(&change("renumbered", |project| {
        project.rename("stages/5_join.toml", "stages/8_join.toml");
        project.rename("stages/4_classify.toml", "stages/5_classify.toml");
        project.rename("stages/3_batch.toml", "stages/4_batch.toml");
        project.rename("stages/2_parse.toml", "stages/3_parse.toml");
        project.input(3, "IfcDoor");
    }));
}

#[test]
fn altered_outputs_made_again_by_force() {
    let forced = Change {
        name: "force",
        make: |project| {
            project.write("workspace/intermediate/out/batch_3.json", "{\"mine\": 1}");
            project.write("workspace/outputs/count.json", "{\"mine\": 2}");
        },
        words: &["run", "-B"],
        again: true,
        settled: false,
    };
    resumes(&forced);
}

pub fn everything(project: &Project) {
    project.remove("workspace/inputs/batch_1.json");
    project.input(3, "IfcDoor");
    project.input(6, "IfcWall");
    project.write("schemas/copy.schema.json", r#"{"required": ["items"]}"#);
    project.rename("stages/5_join.toml", "stages/6_gather.toml");
}

#[test]
fn everything_at_once() {
    resumes(&change("everything", everything));
}

#[test]
fn everything_at_once_after_a_quick_check() {
    resumes(&Change {
        settled: true,
        ..change("everything, settled", everything)
    });
}
