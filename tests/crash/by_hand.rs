//! A crash while something that a person wrote is accepted, replaced or removed: their bytes are somewhere at every moment.

use super::project::{assert_same, operations};
use super::sweep::{at_each, stops};
use crate::support::Project;
use milepost_core::model::event::Event;

const PATH: &str = "workspace/outputs/count.json";
const MINE: &str = "{\"external_wall\": 8, \"note\": \"counted on site\"}\n";
const ACCEPT: &[&str] = &["accept", "join", "--why", "counted"];

/// A project whose last output a person modified.
fn modified() -> Project {
    let project = Project::small();
    project.complete(&["run"]);
    project.write(PATH, MINE);
    project
}

fn accepted() -> Project {
    let project = modified();
    project.complete(ACCEPT);
    project
}

/// The folders of the workspace in which the bytes are.
fn places(project: &Project) -> Vec<&'static str> {
    let folders = ["outputs", ".milepost/accepted", ".milepost/quarantine"];
    let has = |folder: &&str| {
        let files = project.workspace_files(&[folder]);
        files.values().any(|bytes| bytes == MINE.as_bytes())
    };
    folders.into_iter().filter(has).collect()
}

/// Stops a command at each operation, and does it again: what a person wrote is never gone, and ends in `folders`.
fn survives(base: &Project, words: &[&str], folders: &[&str]) {
    let operations = operations(&base.copy(), words);
    assert!(operations.len() > 10, "{operations:?}");
    let stops = stops(&operations, 24);
    at_each(&operations, &stops, |stop| {
        let project = base.copy();
        project.run_on_disk(words, &stop.setting);
        assert_ne!(places(&project), [""; 0], "what a person wrote is gone");
        project.complete(words);
        assert_eq!(places(&project), folders);
    });
}

#[test]
fn an_output_that_is_accepted() {
    survives(&modified(), ACCEPT, &["outputs", ".milepost/accepted"]);
}

/// A project whose second stage waits for approval.
fn waiting() -> Project {
    let project = Project::small();
    let path = "stages/2_parse.toml";
    let declared = project.read(path) + "\n[approve]\nby = \"reviewer\"\n";
    project.write(path, declared);
    assert_eq!(project.run_on_disk(&["run"], "unflushed").code, 3);
    project
}

const APPROVE: &[&str] = &["approve", "parse", "--why", "seen"];

#[test]
fn a_stage_that_is_approved() {
    let base = waiting();
    let whole = base.copy();
    let approving = operations(&whole, APPROVE);
    let approved = whole.copy();
    let running = operations(&whole, &["run"]);
    let expected = whole.outputs();
    // The approval is recorded or not.
    at_each(&approving, &stops(&approving, 24), |stop| {
        let project = base.copy();
        project.run_on_disk(APPROVE, &stop.setting);
        let is_approved = project.state().approvals.contains_key("parse");
        let code = project.run_on_disk(&["run"], "unflushed").code;
        assert_eq!(code, if is_approved { 0 } else { 3 });
        project.complete(APPROVE);
        project.complete(&["run"]);
        assert_same(&project.outputs(), &expected);
        project.assert_verified();
    });
    // A run that is killed continues under the same approval.
    at_each(&running, &stops(&running, 24), |stop| {
        let project = approved.copy();
        project.run_on_disk(&["run"], &stop.setting);
        project.complete(&["run"]);
        assert_same(&project.outputs(), &expected);
        project.assert_verified();
        let open = &project.state().approvals["parse"].open;
        assert!(open.is_empty(), "{open:?}");
    });
}

#[test]
fn an_approved_batch_that_is_rebuilt_and_lost() {
    let project = waiting();
    project.complete(APPROVE);
    project.complete(&["run"]);
    let expected = project.outputs();
    project.remove("workspace/intermediate/parsed.json");
    let operations = operations(&project.copy(), &["run"]);
    let is_it =
        |one: &String| one.starts_with("rename") && one.ends_with("intermediate/parsed.json");
    let at = operations.iter().position(is_it).unwrap() + 1;
    project.run_on_disk(&["run"], &format!("{at},unflushed"));
    // The power fails: what was written is gone.
    std::fs::remove_dir_all(project.at("workspace/.milepost/scratch")).unwrap();
    project.complete(&["run"]);
    assert_same(&project.outputs(), &expected);
    let journal = project.journal();
    let lost = journal
        .iter()
        .filter(|record| matches!(record.event, Event::Lost { .. }));
    assert_eq!(lost.count(), 1);
}

#[test]
fn an_accepted_output_that_is_replaced() {
    let folders = [".milepost/accepted", ".milepost/quarantine"];
    survives(&accepted(), &["run", "--force", "join"], &folders);
}

#[test]
fn an_accepted_output_whose_copy_is_gone_and_that_is_replaced() {
    let project = accepted();
    std::fs::remove_dir_all(project.at("workspace/.milepost/accepted")).unwrap();
    let folders = [".milepost/quarantine"];
    survives(&project, &["run", "--force", "join"], &folders);
}

#[test]
fn a_modified_output_that_is_replaced() {
    let folders = [".milepost/quarantine"];
    survives(&modified(), &["run", "--force", "join"], &folders);
}

#[test]
fn an_accepted_output_that_is_cleaned() {
    let folders = [".milepost/accepted", ".milepost/quarantine"];
    survives(&accepted(), &["clean", "join", "--yes"], &folders);
}
