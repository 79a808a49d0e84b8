//! The main pipeline and the examples load without a warning.

use super::Files;
use std::path::Path;

/// The declarations of a project of this repository. Workspaces and the target folder hold none.
fn declared(project: &str) -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(project);
    let mut files = Files::default();
    let is_source = |path: &Path| {
        let place = path.strip_prefix(&root).unwrap();
        ["workspace", "workspaces", "target", ".git"]
            .iter()
            .all(|folder| !place.starts_with(folder))
    };
    let all = walkdir::WalkDir::new(&root).into_iter();
    for entry in all.filter_entry(|entry| is_source(entry.path())) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let place = entry.path().strip_prefix(&root).unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            files.0.insert(place.to_str().unwrap().to_owned(), bytes);
        }
    }
    files
}

/// Checks the stages of a project and the number of steps of each. Fails at an error or a warning.
#[track_caller]
fn assert_stages(project: &str, expected: &[(&str, usize)]) {
    let loaded = declared(project).load();
    let (pipeline, warnings) =
        loaded.unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert_eq!(warnings, [], "{project}");
    let stages: Vec<_> = pipeline
        .stages
        .iter()
        .map(|stage| (stage.name.as_str(), stage.steps.len()))
        .collect();
    assert_eq!(stages, expected, "{project}");
}

#[test]
fn the_main_pipeline_loads() {
    let stages = [("parse", 1), ("batch", 1), ("classify", 1), ("generate", 9)];
    assert_stages("", &stages);
}

#[test]
fn grading_loads() {
    let stages = [
        ("validate", 1),
        ("parse", 2),
        ("evaluate", 3),
        ("score", 1),
        ("report", 5),
    ];
    assert_stages("examples/grading", &stages);
}

#[test]
fn prompt_tests_load() {
    let stages = [
        ("auth", 4),
        ("extract", 3),
        ("context", 1),
        ("test", 4),
        ("report", 2),
    ];
    assert_stages("examples/prompt-tests", &stages);
}

#[test]
fn the_study_plan_loads() {
    let stages = [
        ("intake", 3),
        ("read", 1),
        ("window", 1),
        ("ingest", 1),
        ("collect", 1),
        ("dispatch", 1),
        ("plan", 8),
        ("approve", 1),
        ("export", 5),
    ];
    assert_stages("examples/study-plan", &stages);
}

#[test]
fn diagrams_load() {
    let stages = [("cards", 2), ("patterns", 1), ("author", 9), ("collect", 3)];
    assert_stages("examples/diagrams", &stages);
}
