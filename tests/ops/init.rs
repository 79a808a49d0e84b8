//! `init`: the templates make projects that load and run.

use super::project::Project;
use milepost::ops::init::{init, templates};
use milepost::ops::run::exit_code;
use milepost::view;
use std::path::Path;

#[test]
fn minimal_runs_and_says_how_to_go_on() {
    let project = Project::new(&[]);
    let folder = project.at("");
    let made = init(&project.disk, &folder, ".", "minimal").unwrap();
    assert_eq!(
        view::init::init(&made),
        "made a project from `minimal`: two stages that run commands over text files
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
    let report = project.run();
    assert_eq!(exit_code(&report), 0, "{report:?}");
    assert_eq!(
        project.text("workspace/outputs/all.txt"),
        "THE FIRST MILEPOST\nTHE SECOND\n"
    );

    let before = project.files();
    let error = init(&project.disk, &folder, "", "minimal")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("`milepost.toml` (and 7 more) is in ")
            && error.ends_with("`milepost init minimal DIR`"),
        "{error}"
    );
    assert_eq!(project.files(), before);
    let made = init(&project.disk, &folder, "deep/er", "minimal").unwrap();
    assert_eq!(
        made.next,
        ["milepost -C deep/er plan", "milepost -C deep/er run"]
    );
    let error = init(&project.disk, &folder, "x", "maximal")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "there is no template `maximal`: there are `ifc` (a building model to an Excel and a PDF report), \
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
    milepost::ops::project::declarations(&project.at("")).unwrap();
}
