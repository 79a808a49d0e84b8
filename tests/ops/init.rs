//! `init`: the templates make projects that load and run.

use crate::support::Project;
use milepost::view;
use milepost_engine::ops::change::init::{init, templates};
use milepost_engine::ops::exit_code::exit_code;
use std::path::Path;

#[test]
fn minimal_runs_and_says_how_to_go_on() {
    let project = Project::new(&[]);
    let folder = project.at("");
    let made = init(&project.disk, &folder, ".", "minimal").unwrap();
    assert_eq!(
        view::init::init(&made),
        "created a project from `minimal`: two stages that run commands over text files
  milepost.toml
  stages/1_upper.toml
  stages/2_join.toml
  workspace/inputs/note_1.txt
  workspace/inputs/note_2.txt
  schemas/milepost/project.schema.json
  schemas/milepost/stage.schema.json
  .gitignore

next:
  milepost plan
  milepost run
"
    );
    let report = project.run_in_process();
    assert_eq!(exit_code(&report), 0, "{report:?}");
    assert_eq!(
        project.read("workspace/outputs/all.txt"),
        "THE FIRST MILEPOST\nTHE SECOND\n"
    );

    let name = folder.canonicalize().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    let declaration = project.read("milepost.toml");
    assert!(
        declaration.contains(&format!("\nname = \"{name}\"\n")),
        "{declaration}"
    );

    let before = project.all_files();
    let error = init(&project.disk, &folder, "", "minimal")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("`milepost.toml` (and 7 more) already exists in ")
            && error.ends_with("`milepost init minimal DIR`"),
        "{error}"
    );
    assert_eq!(project.all_files(), before);
    let made = init(&project.disk, &folder, "deep/er", "minimal").unwrap();
    assert_eq!(
        made.next,
        ["milepost -C deep/er plan", "milepost -C deep/er run"]
    );
    let declaration = project.read("deep/er/milepost.toml");
    assert!(declaration.contains("\nname = \"er\"\n"), "{declaration}");
    let error = init(&project.disk, &folder, "x", "maximal")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "there is no template `maximal`; available: `ifc` (a building model to an Excel and a PDF report), \
         `grading` (submissions graded by a table of criteria, with a report for each), \
         `study-plan` (syllabi to a plan of every day up to the last midterm), \
         `diagrams` (lesson cards to diagrams, redrawn until a critic accepts them), \
         `prompt-tests` (tests of a prompt, answered and judged several times, to a TAP file), \
         `minimal` (two stages that run commands over text files)"
    );
}

#[test]
fn the_main_pipeline_is_the_repository_itself() {
    assert_eq!(templates()[0].0, "ifc");
    let project = Project::new(&[]);
    let made = init(&project.disk, &project.at(""), "", "ifc").unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "stages",
        "schemas",
        "rules",
        "filters",
        "prompts",
        "templates",
        "workspace/inputs",
    ] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_file() {
                assert!(made.files.contains(&path), "init does not make {path}");
            }
        }
    }
    milepost_engine::ops::project::declarations(&project.at("")).unwrap();
}

/// The files of an example, without what runs of it leave.
fn files_of(example: &Path) -> Vec<String> {
    let mut files: Vec<String> = walkdir::WalkDir::new(example)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let path = entry.path().strip_prefix(example).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .filter(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            let made = parts.iter().position(|part| *part == "workspace");
            let is_made = made.is_some_and(|at| parts.get(at + 1) != Some(&"inputs"));
            let left = [".milepost", "node_modules", "workspaces", "runs"];
            !is_made && !parts.iter().any(|part| left.contains(part))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn each_example_is_copied_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for example in ["grading", "study-plan", "diagrams", "prompt-tests"] {
        let project = Project::new(&[]);
        let made = init(&project.disk, &project.at(""), "", example).unwrap();
        let mut made: Vec<String> = made.files;
        made.retain(|file| !file.starts_with("schemas/milepost/"));
        made.sort();
        assert_eq!(made, files_of(&root.join("examples").join(example)));
        for file in made.iter().filter(|file| file.contains(".toml")) {
            if let Some(line) = project.read(file).strip_prefix("#:schema ") {
                let named = line.lines().next().unwrap();
                let folder = project.at(file).parent().unwrap().to_owned();
                assert!(folder.join(named).is_file(), "{example}/{file}: {named}");
            }
        }
        milepost_engine::ops::project::declarations(&project.at("")).unwrap();
    }
}

#[test]
fn a_copy_of_an_example_runs() {
    let project = Project::new(&[]);
    init(&project.disk, &project.at(""), "", "prompt-tests").unwrap();
    let report = project.run_in_process();
    assert_eq!(exit_code(&report), 0, "{report:?}");
}
