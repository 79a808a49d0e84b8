//! `verify`: the audit finds what somebody altered, what does not hold, and what nobody made.

use crate::support::Project;
use milepost::view;
use milepost_engine::ops::inspect::verify::{Severity, Verified, verify};

/// A project that was run, and what the audit says of it once something was done to it.
fn after(what: impl FnOnce(&Project)) -> (Verified, String) {
    let project = Project::names();
    project.run_in_process();
    what(&project);
    let before = project.all_files();
    let found = verify(&project.request(), true).unwrap();
    assert_eq!(project.all_files(), before, "an audit writes nothing");
    let text = view::verify::verify(&found);
    (found, text)
}

#[test]
fn of_what_was_run_everything_is_as_recorded() {
    let (found, text) = after(|_| ());
    assert_eq!(found.exit_code(), 0);
    let (bytes, records) = (found.checked.bytes, found.checked.records);
    let head = found.head.unwrap();
    assert_eq!(
        text,
        format!(
            "head of the journal: {head}\n\
             checked 4 files ({bytes} bytes), 2 checkpoints and {records} records of the journal; validated 4 batches again: \
             everything matches the record\n"
        )
    );
    let (fresh, _) = {
        let project = Project::names();
        let found = verify(&project.request(), false).unwrap();
        (found, project)
    };
    assert_eq!((fresh.exit_code(), fresh.findings), (0, vec![]));
}

#[test]
fn whatever_somebody_alters_is_found() {
    type Deed = fn(&Project);
    let cases: &[(Deed, &str)] = &[
        (
            |project| project.edit("workspace/outputs/total.json", "5", "6"),
            "outputs/total.json (of count): expected digest ",
        ),
        (
            |project| {
                std::fs::remove_file(project.at("workspace/intermediate/list_2.json")).unwrap();
            },
            "intermediate/list_2.json (of sort/list_2): it does not exist",
        ),
        (
            |project| {
                project.edit(
                    "workspace/stage_1_complete.json",
                    "\"element_count\": 5",
                    "\"element_count\": 6",
                );
            },
            "stage_1_complete.json (of sort): expected digest ",
        ),
        (
            |project| std::fs::remove_file(project.at("workspace/stage_1_complete.json")).unwrap(),
            "stage_1_complete.json (of sort): it does not exist",
        ),
        (
            |project| {
                project.write(
                    "workspace/stage_7_complete.json",
                    project
                        .read("workspace/stage_2_complete.json")
                        .replace("\"number\": 2", "\"number\": 7"),
                );
            },
            "stage_7_complete.json: no record lists it",
        ),
        (
            |project| {
                project.edit(
                    "workspace/manifests/sort/page_0001.sha256",
                    "\"attempts\":1",
                    "\"attempts\":2",
                );
            },
            "manifests/sort/page_0001.sha256, line ",
        ),
        (
            |project| {
                project.edit(
                    "workspace/.milepost/journal/000001.jsonl",
                    "sort/list_2 starts",
                    "sort/list_2 began",
                );
            },
            "the journal is broken: ",
        ),
        (
            |project| {
                project.edit(
                    "workspace/.milepost/journal/000001.jsonl",
                    "run ended: complete",
                    "run ended: COMPLETE",
                );
            },
            ".milepost/journal/000001.jsonl: record 19 was changed or cut off: the head of the journal names it. ",
        ),
    ];
    for (deed, message) in cases {
        let (found, text) = after(deed);
        assert_eq!(found.exit_code(), 5, "{text}");
        let word = if message.contains("it does not exist") {
            "missing "
        } else {
            "modified"
        };
        let line = text.lines().next().unwrap();
        assert!(line.starts_with(word) && line.contains(message), "{text}");
    }
}

#[test]
fn what_does_not_hold_any_more_is_invalid() {
    let (found, text) = after(|project| {
        project.edit("stages/1_sort.toml", r#".name != """#, r#".name != "Cy""#);
    });
    assert_eq!(found.exit_code(), 1, "{text}");
    assert!(
        text.starts_with(
            "invalid  sort/list_2: NO_NAME: `all(.sorted.people[]; .name != \"Cy\")` is not true\n"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("validated 4 batches again: 1 invalid\n"),
        "{text}"
    );
}

#[test]
fn what_nobody_made_and_what_is_out_of_date_is_noted() {
    let (found, text) = after(|project| {
        project.write("workspace/intermediate/stray.json", "{}");
        project.edit("workspace/inputs/list_2.json", "Cy", "Cyd");
    });
    assert_eq!(found.exit_code(), 0);
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.severity == Severity::Note)
    );
    assert!(
        text.starts_with(
            "note     sort: 1 of its batches is out of date: `milepost why sort` shows why\n\
             note     intermediate/stray.json: not written by a stage\n"
        ),
        "{text}"
    );
}
