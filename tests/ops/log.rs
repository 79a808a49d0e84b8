//! `log`: what happened, of all, of a stage, of a batch.

use crate::support::Project;
use milepost::view;
use milepost_engine::ops::inspect::log::{Log, LogOptions, log};

fn shown(project: &Project, wanted: &LogOptions) -> (Log, String) {
    let found = log(&project.request(), wanted).unwrap();
    let mut text = view::log::log(&found);
    for record in &found.records {
        text = text.replace(&record.run_id, "RUN");
    }
    (found, text.replace("2026-11-21 10:00:00Z", "TIME"))
}

fn of(target: &str) -> LogOptions {
    LogOptions {
        target: Some(target.to_owned()),
        ..LogOptions::default()
    }
}

#[test]
fn one_file_is_taken_over() {
    let project = Project::names();
    project.remove("workspace/inputs/list_2.json");
    project.remove("workspace/inputs/list_10.json");
    project.run_in_process();
    let (_, text) = shown(&project, &of("count"));
    assert!(
        text.contains("TIME  handoff   count  count reads 1 file from sort\n"),
        "{text}"
    );
}

#[test]
fn tells_what_happened_in_order() {
    let project = Project::names();
    assert_eq!(shown(&project, &LogOptions::default()).1, "no records\n");
    project.run_in_process();
    let (found, text) = shown(&project, &LogOptions::default());
    assert_eq!(
        text,
        "TIME  invoke    milepost  run started: milepost run\n\
         TIME  invoke    sort      sort starts: 3 of 3 batches\n\
         TIME  invoke    sort      sort/list_1 starts\n\
         TIME  invoke    sort      sort/list_2 starts\n\
         TIME  invoke    sort      sort/list_10 starts\n\
         TIME  complete  sort      sort/list_1 done: 2 elements, 1 file\n\
         TIME  complete  sort      sort/list_2 done: 1 element, 1 file\n\
         TIME  complete  sort      sort/list_10 done: 2 elements, 1 file\n\
         TIME  complete  sort      sort complete: 3 batches\n\
         TIME  invoke    count     count starts: 1 of 1 batch\n\
         TIME  handoff   count     count reads 3 files from sort\n\
         TIME  invoke    count     count starts\n\
         TIME  complete  count     count done: 1 file\n\
         TIME  complete  count     count complete: 1 batch\n\
         TIME  complete  milepost  run ended: complete\n"
    );
    let run = found.records[0].run_id.clone();
    let (all, limited) = (
        found.records.len() as u64,
        LogOptions {
            limit: Some(1),
            ..LogOptions::default()
        },
    );
    let (found, text) = shown(&project, &limited);
    assert_eq!(found.left_out, all - 1);
    assert_eq!(
        text,
        format!(
            "… {} earlier records\nTIME  complete  milepost  run ended: complete\n",
            all - 1
        )
    );
    let (_, text) = shown(&project, &of("sort/list_2"));
    assert_eq!(
        text,
        "TIME  invoke    sort  sort/list_2 starts\n\
         TIME  complete  sort  sort/list_2 done: 1 element, 1 file\n"
    );
    let of_run = |run: &str| LogOptions {
        run: Some(run.to_owned()),
        ..of("count")
    };
    assert_eq!(shown(&project, &of_run(&run[..20])).0.records.len(), 5);
    assert_eq!(shown(&project, &of_run("X")).1, "no records\n");
    let error = log(&project.request(), &of("sport")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no stage `sport`; this project has sort, count: did you mean `sort`?"
    );
}

#[test]
fn of_a_batch_shows_what_its_programs_printed() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"say\"\n"),
        (
            "stages/1_say.toml",
            r#"
[each.word]
values = ["a", "b"]

[step]
command = "echo {{ word }} first; echo said > note; echo loud >&2; test {{ word }} = a && echo {} > {{ paths.out }}"

[outputs]
out = { path = "outputs/{{ word }}.json", schema = false }
"#,
        ),
    ]);
    project.run_in_process();
    let (_, text) = shown(&project, &of("say/a"));
    assert_eq!(
        text,
        "TIME  invoke    say  say/a starts\nTIME  complete  say  say/a done: 1 file\n\n\
         .milepost/logs/RUN/say.a-1.log:\n    a first\n    loud\n"
    );
    let (found, text) = shown(
        &project,
        &LogOptions {
            errors: true,
            ..of("say/b")
        },
    );
    assert_eq!(found.records.len(), 1, "{text}");
    let printed: Vec<_> = found
        .printed
        .iter()
        .map(|printed| printed.path.file_name())
        .collect();
    assert_eq!(printed, ["say.b-2.log", "WHY.txt"], "{text}");
    assert!(
        text.starts_with("TIME  error  say  say/b failed: EXIT: "),
        "{text}"
    );
}
