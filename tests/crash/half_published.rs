//! A run is stopped between the records of batches and the moves of their files: no command that reads reports a modified file, and
//! a plan is what the next run does.

use super::project::operations;
use super::sweep::{Stop, all_stops, at_each, is_full};
use crate::mcp::client::Client;
use crate::support::{Files, Project};
use crate::web::server::Ui;
use milepost_core::model::event::Event;
use milepost_engine::ops::run::RunOptions;
use milepost_engine::ops::run::watch_plan::{WatchPlan, plan_for_watch, run_folders};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RUN: &[&str] = &["run"];

/// The commands that read, each with a code of 0.
const QUERIES: &[&[&str]] = &[
    &["status"],
    &["plan"],
    &["verify"],
    &["why", "copy/batch_2"],
    &["why", "intermediate/parsed.json"],
    &["trace", "outputs/all.json"],
    &["log"],
];

/// A workspace in which the next run replaces files of each stage, and retires a batch of the first.
fn changed() -> Project {
    let project = Project::small();
    project.complete(RUN);
    project.input(2, "IfcDoor");
    project.input(3, "IfcDoor");
    std::fs::remove_file(project.at("workspace/inputs/batch_4.json")).unwrap();
    project
}

/// The stops from a record that batches are published to the end of their moves.
fn stops_of_moves(operations: &[String]) -> Vec<Stop> {
    let moves = |operation: &String| {
        let into = operation.contains("/workspace/intermediate/")
            || operation.contains("/workspace/outputs/")
            || operation.contains("/quarantine/");
        operation.starts_with("rename") && into
    };
    let is_near = |at: usize| {
        let from = at.saturating_sub(2);
        let near = operations.iter().skip(from).take(2);
        near.into_iter().any(moves)
    };
    let all = all_stops(operations).into_iter();
    let near: Vec<_> = all.filter(|stop| is_near(stop.at)).collect();
    let step = if is_full() {
        1
    } else {
        near.len().div_ceil(16)
    };
    near.into_iter().step_by(step).collect()
}

/// The batches that a plan lists, by stage, as far as it is certain.
fn planned(project: &Project) -> (BTreeSet<String>, BTreeSet<String>) {
    let plan: Value = serde_json::from_str(&project.query(&["plan", "--json"])).unwrap();
    let names = |stage: &Value, list: &str| {
        let batches = stage[list].as_array().unwrap().iter();
        let name = stage["stage"].as_str().unwrap().to_owned();
        let names: Vec<_> = batches
            .map(|batch| format!("{name}/{}", batch["batch"].as_str().unwrap()))
            .collect();
        names
    };
    let stages = plan["stages"].as_array().unwrap();
    let all = |list: &str| stages.iter().flat_map(|stage| names(stage, list)).collect();
    (all("will"), all("may"))
}

/// The batches that the last run began.
fn began(project: &Project) -> BTreeSet<String> {
    let records = project.journal();
    let last = records.last().unwrap().run_id.clone();
    let records = records.into_iter().filter(|record| record.run_id == last);
    let begun = records.filter_map(|record| match record.event {
        Event::AttemptStarted { stage, batch, .. } => Some(format!("{stage}/{batch}")),
        _ => None,
    });
    begun.collect()
}

/// Stops a run at each move, and asks all commands that read.
fn reads(make: fn() -> Project) {
    let whole = make();
    let operations = operations(&whole, RUN);
    let expected = whole.outputs();
    let stops = stops_of_moves(&operations);
    assert!(stops.len() > 8, "{operations:#?}");
    let base = make();
    at_each(&operations, &stops, |stop| {
        let project = base.copy();
        let ended = project.run_on_disk(RUN, &stop.setting);
        assert_eq!(ended.code, 134, "{ended:?}");
        for words in QUERIES {
            // A file that no batch wrote yet is not there to be explained.
            let text = project.run_on_disk(words, "").text();
            for word in ["modified ", "by hand", "accept"] {
                assert!(!text.contains(word), "{words:?}: {text}");
            }
        }
        project.assert_verified();
        let (will, may) = planned(&project);
        project.complete(RUN);
        assert_eq!(project.outputs(), expected);
        let began = began(&project);
        assert!(will.is_subset(&began), "{will:?}, but {began:?}");
        let known: BTreeSet<_> = will.union(&may).cloned().collect();
        let of_first = |names: &BTreeSet<String>| {
            let names = names.iter().filter(|name| name.starts_with("copy/"));
            names.cloned().collect::<Vec<_>>()
        };
        assert_eq!(of_first(&known), of_first(&began));
        project.assert_verified();
    });
}

#[test]
fn commands_that_read_see_a_first_run_recovered() {
    reads(Project::small);
}

#[test]
fn commands_that_read_see_replaced_files_recovered() {
    reads(changed);
}

/// A workspace in which a run was killed after the first move of a file, and the outputs of a whole run.
fn killed() -> (Project, Files) {
    let whole = changed();
    let operations = operations(&whole, RUN);
    let is_move =
        |one: &String| one.starts_with("rename") && one.contains("/workspace/intermediate/out/");
    let at = operations.iter().position(is_move).unwrap() + 1;
    let project = changed();
    project.run_on_disk(RUN, &format!("{at},unflushed"));
    (project, whole.outputs())
}

/// Returns the number of files that `status` and the tool `status` show as half published, and checks that report and overview
/// show it too.
#[track_caller]
fn half_published(project: &Project) -> u64 {
    let status: Value = serde_json::from_str(&project.query(&["status", "--json"])).unwrap();
    let files = status["half_published"].as_u64().unwrap_or_default();
    let text = format!("A killed run left {files} files half published: the next run continues.");
    project.run_on_disk(&["report", "--out", "report.html"], "");
    let report = project.read("report.html");
    assert_eq!(report.contains(&text), files > 0, "{report}");
    let ui = Ui::start(project);
    let overview = ui.get("").body;
    assert_eq!(overview.contains(&text), files > 0, "{overview}");
    let mut client = Client::of(project);
    let told = client.call("status", json!({}));
    assert_eq!(told["half_published"], status["half_published"]);
    files
}

#[test]
fn every_view_shows_files_half_published() {
    let (project, expected) = killed();
    assert!(half_published(&project) > 1);
    let unsettled = project.state().unsettled;
    let files = unsettled.iter().flat_map(|batch| &batch.files);
    let scratch = |path: &str| project.at("workspace").join(path);
    let mut half = files.filter(|file| !file.marker && scratch(file.scratch.as_str()).exists());
    let half = half.next_back().unwrap();
    let ui = Ui::start(&project);
    let page = ui.get(&format!("file?path={}", half.path)).body;
    let place = scratch(half.path.as_str());
    assert!(page.contains(&place.display().to_string()), "{page}");
    assert!(!page.contains(".milepost/scratch"), "{page}");
    let bytes = std::fs::read_to_string(scratch(half.scratch.as_str())).unwrap();
    // Each request looks at the files again.
    for _ in 0..2 {
        let raw = ui.get(&format!("raw?path={}", half.path));
        assert_eq!((raw.status, &*raw.body), (200, &*bytes));
    }
    let garbage = project.query(&["gc"]);
    assert!(!garbage.contains("scratch"), "{garbage}");
    project.run_on_disk(&["gc", "--yes"], "");
    assert_eq!(half_published(&project), 0);
    project.complete(RUN);
    assert_eq!(project.outputs(), expected);
}

#[test]
fn a_run_whose_renames_fail_leaves_files_half_published() {
    let (project, expected) = killed();
    let before = half_published(&project);
    let folder = project.at("workspace/intermediate/out");
    let aside = project.at("workspace/intermediate/aside");
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "").unwrap();
    let ended = project.run_on_disk(RUN, "unflushed");
    assert_eq!(ended.code, 1, "{ended:?}");
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    assert_eq!(half_published(&project), before);
    project.complete(RUN);
    assert_eq!(half_published(&project), 0);
    assert_eq!(project.outputs(), expected);
}

#[test]
fn a_watch_recovers_before_it_plans() {
    let (project, expected) = killed();
    assert!(!project.state().unsettled.is_empty());
    let request = project.request();
    let planned = plan_for_watch(
        &request,
        &run_folders(&request).unwrap(),
        &RunOptions::default(),
    );
    let Ok(WatchPlan::Plan(plan, _)) = planned else {
        panic!("{planned:?}");
    };
    let altered = plan.stages.iter().map(|stage| stage.altered.len());
    assert_eq!((plan.half_published, altered.sum::<usize>()), (0, 0));
    assert_eq!(project.state().unsettled, []);
    let last = project.records().pop().unwrap();
    assert_eq!(
        (&last["kind"], &last["data"]["status"]),
        (&"run_finished".into(), &"recovered".into())
    );
    project.complete(RUN);
    assert_eq!(project.outputs(), expected);
}

#[test]
fn an_audit_accuses_nobody_after_a_kill() {
    let operations = operations(&changed(), RUN);
    let stops = all_stops(&operations);
    let step = if is_full() {
        1
    } else {
        stops.len().div_ceil(24)
    };
    let stops: Vec<_> = stops.into_iter().step_by(step).collect();
    let base = changed();
    at_each(&operations, &stops, |stop| {
        let project = base.copy();
        project.run_on_disk(RUN, &stop.setting);
        let audit = project.run_on_disk(&["verify"], "");
        assert_eq!(audit.code, 0, "{audit:?}");
    });
}
