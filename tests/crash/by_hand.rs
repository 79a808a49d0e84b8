//! A crash while something that a person wrote is accepted, replaced or removed: their bytes are somewhere at every moment.

use super::project::operations;
use super::sweep::{at_each, stops};
use crate::support::Project;

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
