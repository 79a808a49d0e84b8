//! `diff`: two workspaces by element and field; a workspace and its last run by digest.

use super::names::people;
use crate::support::Project;
use milepost::view;
use milepost_engine::ops::inspect::diff::{Diff, DiffOptions, diff};
use milepost_engine::ops::run::run;
use milepost_engine::run::notice::Silent;
use milepost_engine::run::stop::StopFlag;

fn wanted(other: Option<&str>) -> DiffOptions {
    DiffOptions {
        other: other.map(Into::into),
        stages: Vec::new(),
        limit: 2,
    }
}

fn compared(project: &Project, wanted: &DiffOptions) -> (Diff, String) {
    let found = diff(&project.request(), wanted).unwrap();
    let text = view::diff::diff(&found).replace(
        project.at("").canonicalize().unwrap().to_str().unwrap(),
        "PROJECT",
    );
    let text = match text.find("before run ") {
        Some(at) => format!("{}RUN{}", &text[..at + 11], &text[at + 37..]),
        None => text,
    };
    (found, text)
}

/// Runs the project over another workspace.
fn run_other(project: &Project) {
    let mut request = project.request();
    request.workspace = Some(project.at("other"));
    run(&request, &project.wanted(), &mut Silent, &StopFlag::new()).unwrap();
}

#[test]
fn two_workspaces_differ_by_element_and_field() {
    let project = Project::names();
    for list in ["list_1.json", "list_2.json", "list_10.json"] {
        project.write(
            &format!("other/inputs/{list}"),
            project.read(&format!("workspace/inputs/{list}")),
        );
    }
    project.run_in_process();
    let error = diff(&project.request(), &wanted(Some("other")))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "`other` is not a workspace with a run: name the folder that contains `.milepost`"
    );
    run_other(&project);
    let (found, text) = compared(&project, &wanted(Some("other")));
    assert!(found.is_same());
    assert_eq!(
        text,
        "old: PROJECT/other\nnew: PROJECT/workspace\n\nno differences: 2 outputs are the same\n"
    );

    // `a` moves to another list, `c` is renamed, `d` and `e` go, `f`, `g` and `h` come.
    project.write("workspace/inputs/list_1.json", people(&[("b", "Bo")]));
    project.write(
        "workspace/inputs/list_2.json",
        people(&[("a", "Al"), ("c", "Cyd")]),
    );
    project.write(
        "workspace/inputs/list_10.json",
        people(&[("f", "Fay"), ("g", "Guy"), ("h", "Hal")]),
    );
    project.run_in_process();
    let (found, text) = compared(&project, &wanted(Some("other")));
    assert!(!found.is_same());
    assert_eq!(
        text,
        "old: PROJECT/other
new: PROJECT/workspace

sorted of sort
  ~ intermediate/list_1.json
  ~ intermediate/list_2.json
  and 1 more file
  by .id: 2 the same, 1 changed, 3 added, 2 removed
  ~ c
      /name: \"Cy\" → \"Cyd\"
  + f
  + g
  + and 1 more
  - d
  - e

total of count
  ~ outputs/total.json
      /count: 5 → 6
"
    );
    let only = DiffOptions {
        stages: vec!["2".into()],
        ..wanted(Some("other"))
    };
    assert_eq!(compared(&project, &only).0.outputs.len(), 1);
}

#[test]
fn with_the_last_run_by_digest() {
    let project = Project::names();
    let error = diff(&project.request(), &wanted(None))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "this workspace has no outputs: there is nothing to compare"
    );
    project.run_in_process();
    let (found, _) = compared(&project, &wanted(None));
    let added: Vec<usize> = found
        .outputs
        .iter()
        .map(|output| output.added.len())
        .collect();
    assert_eq!((added, found.outputs[0].more), (vec![2, 1], 1));

    project.write("workspace/inputs/list_2.json", people(&[("c", "Cyd")]));
    std::fs::remove_file(project.at("workspace/inputs/list_10.json")).unwrap();
    project.run_in_process();
    project.run_in_process();
    let (_, text) = compared(&project, &wanted(None));
    assert_eq!(
        text,
        "old: before run RUN
new: PROJECT/workspace
only the digests of the old files are known, not their contents

sorted of sort, 1 file the same
  ~ intermediate/list_2.json
  - intermediate/list_10.json

total of count
  ~ outputs/total.json
"
    );
}
