//! `status`: how far each stage is, before, between and after runs.

use crate::support::Project;
use milepost::view;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::inspect::status::{StageProgress, Status, status};
use milepost_engine::ops::run::RunOptions;

fn shown(project: &Project) -> (Status, String) {
    let found = status(&project.request()).unwrap();
    let call = Invocation {
        folder: project.at(""),
        ..Invocation::default()
    };
    let mut text = view::status::status(&found, &call);
    text = text.replace(&found.workspace, "WORKSPACE");
    if let Some(run) = &found.last_run {
        text = text.replace(&run.run_id, "RUN");
    }
    (found, text)
}

#[test]
fn before_the_first_run_everything_waits_and_nothing_is_written() {
    let project = Project::names();
    let before = project.all_files();
    let (_, text) = shown(&project);
    assert_eq!(
        text,
        "names in WORKSPACE\nno run yet\n\n\
         1  sort   out of date  0 of 3\n\
         2  count  out of date  0 of 1\n\n  \
         sort: 3 batches will run (`milepost why sort`)\n\n  \
         count: 1 batch will run (`milepost why count`)\n"
    );
    assert_eq!(project.all_files(), before);
}

#[test]
fn after_a_run_everything_is_complete() {
    let project = Project::names();
    project.run_in_process();
    let before = project.all_files();
    let (_, text) = shown(&project);
    assert_eq!(
        text,
        "names in WORKSPACE\nidle; the last run finished 2026-11-21 10:00:00Z: complete (run RUN)\n\n\
         1  sort   up to date  3 of 3  5 elements  2026-11-21 10:00:00Z  stage_1_complete.json\n\
         2  count  up to date  1 of 1              2026-11-21 10:00:00Z  stage_2_complete.json\n\n\
         Everything is up to date.\n"
    );
    assert_eq!(project.all_files(), before);
}

#[test]
fn a_stage_of_which_a_part_was_run_is_held() {
    let project = Project::names();
    project.run_in_process_with(&RunOptions {
        limit: Some(1),
        ..project.wanted()
    });
    let (_, text) = shown(&project);
    assert_eq!(
        text,
        "names in WORKSPACE\nidle; the last run finished 2026-11-21 10:00:00Z: unfinished (run RUN)\n\n\
         1  sort   out of date  1 of 3  2 elements  2026-11-21 10:00:00Z\n\
         2  count  out of date  0 of 1\n\n  \
         sort: 2 batches will run (`milepost why sort`)\n\n  \
         count: 1 batch will run (`milepost why count`)\n"
    );
}

#[test]
fn failed_outdated_and_altered_are_said() {
    let project = Project::names();
    project.edit("workspace/inputs/list_2.json", "Cy", "");
    project.run_in_process();
    let (found, text) = shown(&project);
    assert_eq!(found.stages[0].status, StageProgress::Failed);
    assert!(text.contains("1  sort   failed       1 of 3"), "{text}");
    assert!(
        text.contains(
            "  sort/list_2 failed: NO_NAME: `all(.sorted.people[]; .name != \"\")` is not true\n"
        ),
        "{text}"
    );

    project.write(
        "workspace/inputs/list_2.json",
        r#"{"people": [{"id": "c", "name": "Cy"}]}"#,
    );
    project.run_in_process();
    project.edit("workspace/inputs/list_1.json", "Bo", "Bob");
    let (_, text) = shown(&project);
    assert!(text.contains("1  sort   out of date  2 of 3"), "{text}");
    assert!(text.contains("2  count  out of date  1 of 1"), "{text}");

    project.edit("workspace/intermediate/list_2.json", "Cy", "Cyd");
    let (found, text) = shown(&project);
    assert_eq!(found.stages[0].status, StageProgress::Modified);
    assert!(
        text.contains(
            "  sort: modified by hand: intermediate/list_2.json\n    \
             milepost accept sort --why TEXT  accept the modified output: intermediate/list_2.json\n    \
             milepost run --force sort        rebuild; the modified output goes to quarantine\n"
        ),
        "{text}"
    );
}
