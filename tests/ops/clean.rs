//! `clean` and `gc`: what is taken away, and what never is.

use crate::support::Project;
use milepost::view;
use milepost_engine::ops::change::clean::{CleanOptions, Cleaned, clean};
use milepost_engine::ops::change::gc::{Collected, GcOptions, gc};
use milepost_engine::ops::inspect::verify::verify;
use std::collections::BTreeMap;

fn take(project: &Project, stages: &[&str], dry_run: bool) -> Cleaned {
    let wanted = CleanOptions {
        stages: stages.iter().map(|&stage| stage.to_owned()).collect(),
        dry_run,
    };
    clean(&project.request(), &wanted).unwrap()
}

/// What is in the workspace beside Milepost's own.
fn workspace(project: &Project) -> BTreeMap<String, Vec<u8>> {
    let mut files = project.all_files();
    files.retain(|path, _| path.starts_with("workspace/") && !path.contains(".milepost/"));
    files
}

#[test]
fn takes_away_what_runs_made_and_nothing_else() {
    let project = Project::names();
    project.write("workspace/intermediate/mine.txt", "mine");
    let before = workspace(&project);
    project.run_in_process();
    let whole = workspace(&project);
    let would = take(&project, &[], true);
    assert_eq!(workspace(&project), whole);
    assert_eq!(
        view::change::clean::clean(&would),
        format!(
            "  outputs/total.json\n  stage_2_complete.json\n  intermediate/list_1.json\n  intermediate/list_10.json\n  \
             intermediate/list_2.json\n  sort_progress.json\n  stage_1_complete.json\n7 files would be removed, {} bytes\n",
            milepost_core::base::words::grouped(would.bytes)
        )
    );
    let done = take(&project, &[], false);
    assert_eq!(
        done,
        Cleaned {
            dry_run: false,
            ..would
        }
    );
    assert_eq!(workspace(&project), before);
    assert_eq!(verify(&project.request(), true).unwrap().exit_code(), 0);
    assert_eq!(take(&project, &[], false), Cleaned::default());
    project.run_in_process();
    let again = workspace(&project);
    let bytes = |files: &BTreeMap<String, Vec<u8>>| {
        let mut files = files.clone();
        files.retain(|path, _| path.contains("/intermediate/") || path.contains("/outputs/"));
        files
    };
    assert_eq!(bytes(&again), bytes(&whole));
}

#[test]
fn of_one_stage_leaves_the_others_and_sets_aside_what_was_altered() {
    let project = Project::names();
    project.run_in_process();
    project.edit("workspace/intermediate/list_2.json", "Cy", "Cyd");
    let done = take(&project, &["1"], false);
    assert_eq!(done.altered, ["intermediate/list_2.json"]);
    assert_eq!(done.removed.len(), 4);
    let kept: Vec<String> = project
        .all_files()
        .into_keys()
        .filter(|path| path.contains("quarantine"))
        .collect();
    assert_eq!(kept.len(), 2);
    assert!(kept[0].ends_with("-modified/WHY.txt"), "{kept:?}");
    assert!(
        kept[1].ends_with("-modified/intermediate/list_2.json"),
        "{kept:?}"
    );
    let moved = &done.quarantined[0].quarantine;
    assert_eq!(
        view::change::clean::clean(&done).lines().last().unwrap(),
        format!("      help: your version is in {moved}")
    );
    assert!(project.read(&format!("workspace/{moved}")).contains("Cyd"));
    let ran: Vec<u64> = project
        .run_in_process()
        .stages
        .iter()
        .map(|stage| stage.ran)
        .collect();
    assert_eq!(ran, [3, 0]);

    let collect = |older_than, dry_run| {
        let wanted = GcOptions {
            older_than,
            dry_run,
        };
        let found = gc(&project.request(), &wanted).unwrap();
        // What stays is tested in `gc.rs`.
        Collected {
            left: Vec::new(),
            ..found
        }
    };
    assert_eq!(collect(None, false), Collected::default());
    let day = std::time::Duration::from_hours(24);
    assert_eq!(collect(Some(day), true).removed, []);
    project.write("workspace/.stage_1_complete.json.tmp", "{");
    let found = collect(None, true);
    assert_eq!(
        view::change::clean::gc(&found),
        "leftover  1 file  1 bytes  .stage_1_complete.json.tmp\n1 bytes would be freed\n"
    );
    assert_eq!(collect(None, false).bytes, 1);
    assert_eq!(
        collect(None, true),
        Collected {
            dry_run: true,
            ..Collected::default()
        }
    );
}

#[test]
fn of_a_workspace_that_was_never_run_there_is_nothing() {
    let project = Project::names();
    let before = project.all_files();
    assert_eq!(take(&project, &[], false), Cleaned::default());
    assert_eq!(project.all_files(), before);
    let wanted = CleanOptions {
        stages: vec!["sport".into()],
        ..CleanOptions::default()
    };
    assert_eq!(
        clean(&project.request(), &wanted).unwrap(),
        Cleaned::default()
    );
}
