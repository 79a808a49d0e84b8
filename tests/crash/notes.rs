//! The notes of a run hide no change after a crash or a power failure at any of its operations.

use super::project::{assert_same, operations};
use super::sweep::{all_stops, at_each, in_parallel, sample, setting, stops};
use crate::support::{Files, Project};

const RUN: &[&str] = &["run"];

/// The small pipeline, run to its end. The next run has nothing to do, and keeps notes of what was written.
fn done() -> Project {
    let project = Project::small().old();
    project.complete(RUN);
    project
}

fn notes(project: &Project) -> Option<Vec<u8>> {
    std::fs::read(project.at("workspace/.milepost/glance")).ok()
}

/// What somebody does to a workspace, and the file at which the next run stops; if it does not, it makes everything right.
struct Change {
    make: fn(&Project),
    stops_at: Option<&'static str>,
}

const CHANGES: &[Change] = &[
    // Nothing at all.
    Change {
        make: |_| {},
        stops_at: None,
    },
    // An output of the same size and mtime.
    Change {
        make: |project| {
            let path = "workspace/intermediate/out/batch_3.json";
            project.replace(path, "IfcWall", "IfcDoor");
        },
        stops_at: Some("intermediate/out/batch_3.json"),
    },
    // The aggregate.
    Change {
        make: |project| project.replace("workspace/outputs/all.json", "left1", "left9"),
        stops_at: Some("outputs/all.json"),
    },
    // An output cut to nothing.
    Change {
        make: |project| project.write("workspace/intermediate/classified/batch_1.json", ""),
        stops_at: Some("intermediate/classified/batch_1.json"),
    },
    // One deleted.
    Change {
        make: |project| project.remove("workspace/intermediate/out/batch_1.json"),
        stops_at: None,
    },
    // An input of the same size and mtime.
    Change {
        make: |project| {
            let path = "workspace/inputs/batch_2.json";
            project.replace(path, "IfcWall", "IfcDoor");
        },
        stops_at: None,
    },
    // One less, one more.
    Change {
        make: |project| project.remove("workspace/inputs/batch_4.json"),
        stops_at: None,
    },
    Change {
        make: |project| project.input(5, "IfcSlab"),
        stops_at: None,
    },
    // A checkpoint.
    Change {
        make: |project| project.remove("workspace/stage_3_complete.json"),
        stops_at: None,
    },
];

/// What stages have made after each change and a run that nothing disturbed.
fn expected(base: &Project) -> Vec<Files> {
    let after = |change: &Change| {
        let whole = base.copy();
        whole.complete(RUN);
        (change.make)(&whole);
        if change.stops_at.is_none() {
            whole.complete(RUN);
        }
        whole.outputs()
    };
    CHANGES.iter().map(after).collect()
}

/// Changes a workspace, and looks what the next run does.
fn is_noticed(project: &Project, change: &Change, expected: &Files) {
    (change.make)(project);
    if let Some(path) = change.stops_at {
        for _ in 0..2 {
            let ended = project.run_on_disk(RUN, "unflushed");
            assert_eq!(ended.code, 5, "{}", ended.text());
            assert!(ended.text().contains(path), "{}", ended.text());
        }
        assert_same(&project.outputs(), expected);
    } else {
        project.complete(RUN);
        project.assert_done(expected);
        project.assert_verified();
    }
}

#[test]
fn a_run_with_notes_reads_nothing_and_writes_nothing() {
    let project = done();
    assert!(notes(&project).is_some(), "a run leaves notes");
    // What it wrote is read once more.
    project.complete(RUN);
    let before = project.workspace_files(&[""]);
    assert!(notes(&project).is_some());
    let all = operations(&project, RUN);
    let of_lock = |one: &String| one.ends_with("/.milepost/lock");
    assert!(all.iter().all(of_lock), "{all:#?}");
    assert_same(&project.workspace_files(&[""]), &before);
}

#[test]
fn notes_that_a_crash_cut_short_hide_nothing() {
    let base = done();
    let expected = expected(&base);
    let all = operations(&base.copy(), RUN);
    assert!(all.iter().any(|one| one.ends_with("/.milepost/glance")));
    let stops = all_stops(&all);
    let cases: Vec<_> = (0..CHANGES.len())
        .flat_map(|change| stops.iter().map(move |stop| (change, stop)))
        .collect();
    let kinds: Vec<String> = cases
        .iter()
        .map(|(change, stop)| format!("{change} {}", stop.kind()))
        .collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let chosen: Vec<_> = sample(&kinds, 60).into_iter().map(|at| cases[at]).collect();
    in_parallel(&chosen, |(change, stop)| {
        let project = base.copy();
        project.run_on_disk(RUN, &stop.setting);
        is_noticed(&project, &CHANGES[*change], &expected[*change]);
    });
    eprintln!("{} of {} crashes", chosen.len(), cases.len());
}

/// A run that has something to do goes by the notes of the one before, and leaves its own.
#[test]
fn notes_of_a_run_that_worked_hide_nothing_after_a_crash() {
    let base = done();
    base.complete(RUN);
    base.input(5, "IfcSlab");
    let expected = expected(&base);
    let all = operations(&base.copy(), RUN);
    let stops = stops(&all, 40);
    at_each(&all, &stops, |stop| {
        let project = base.copy();
        project.run_on_disk(RUN, &stop.setting);
        project.complete(RUN);
        let change = stop.at % CHANGES.len();
        is_noticed(&project, &CHANGES[change], &expected[change]);
    });
}

/// The power fails while a run keeps its notes, or while the next one goes by them. `MILEPOST_TEST_SEEDS` says how many times.
#[test]
fn notes_that_a_power_failure_left_hide_nothing() {
    let base = done();
    let expected = expected(&base);
    let count = operations(&base.copy(), RUN).len();
    let seeds: Vec<usize> = (0..setting("MILEPOST_TEST_SEEDS", 120) / 3).collect();
    in_parallel(&seeds, |&seed| {
        let project = base.copy();
        let rest = seed / CHANGES.len();
        if rest.is_multiple_of(2) {
            project.complete(RUN);
        }
        let (n, half) = (rest / 2 % (count + 1) + 1, ["", ":half"][rest % 2]);
        let folder = project.at("workspace");
        let power = format!("{n}{half},power={seed}@{}", folder.display());
        project.run_on_disk(RUN, &power);
        project.assert_truth(&[&expected[0]], &Files::new());
        let change = seed % CHANGES.len();
        is_noticed(&project, &CHANGES[change], &expected[change]);
    });
}
