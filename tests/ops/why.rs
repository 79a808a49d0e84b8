//! `why`: of a stage, a batch, an output, an input.

use crate::support::Project;
use milepost::view;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::why::why;

/// The text, with the id of the run and digests of what is not in the test made plain.
fn shown(project: &Project, what: &str) -> String {
    let found = why(&project.request(), what);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let text = view::why::why(&found);
    let mut shown = String::new();
    for line in text.lines() {
        let line = match line.find("by run ") {
            Some(at) => {
                let end = at + 7 + 26;
                let rest = line[end..].split(", in ").collect::<Vec<_>>();
                let rest = match rest.as_slice() {
                    [before, after] => {
                        let after = after.find(": ").map_or("", |at| &after[at..]);
                        format!("{before}, in TIME{after}")
                    }
                    _ => line[end..].to_owned(),
                };
                format!("{}RUN{rest}", &line[..at + 7])
            }
            None => line.to_owned(),
        };
        shown.push_str(&line);
        shown.push('\n');
    }
    shown
}

fn digest(project: &Project, path: &str) -> String {
    format!("{}…", Digest::of(project.read(path)).short())
}

#[test]
fn of_a_batch_that_is_reused_and_of_one_that_will_run() {
    let project = Project::names();
    project.run_in_process();
    let before = digest(&project, "workspace/inputs/list_2.json");
    let output = digest(&project, "workspace/intermediate/list_2.json");
    let size = project.read("workspace/intermediate/list_2.json").len();
    let facts = |text: &str| {
        let at = text.find("\nbuilt from\n").unwrap();
        (text[..at].to_owned(), text[at..].to_owned())
    };
    let (head, rest) = facts(&shown(&project, "sort/list_2"));
    assert_eq!(
        head,
        format!(
            "sort/list_2 up to date: inputs and outputs match the record\n\
             \nmade 2026-11-21 10:00:00Z by run RUN, at the first attempt, in TIME: 1 element\n\
             \ninputs\n  inputs/list_2.json  {before}\n\
             \noutputs\n  intermediate/list_2.json  {output}  {size} bytes  unchanged\n"
        )
    );
    assert!(rest.contains("  param greeting  \"hello\"\n"), "{rest}");
    assert!(rest.contains("\nvalidated by\n"), "{rest}");

    project.edit("workspace/inputs/list_2.json", "Cy", "Cyd");
    project.edit("milepost.toml", "hello", "good day");
    let after = digest(&project, "workspace/inputs/list_2.json");
    let (head, _) = facts(&shown(&project, "1/list_2"));
    assert!(
        head.starts_with(&format!(
            "sort/list_2 will run\n  input inputs/list_2.json changed ({}… → {}…)\n  param greeting \"hello\" → \"good day\"\n",
            &before[..8],
            &after[..8]
        )),
        "{head}"
    );
    assert!(
        head.contains(&format!(
            "inputs\n  inputs/list_2.json  {before} → {after}\n"
        )),
        "{head}"
    );
    assert_eq!(
        shown(&project, "count").lines().take(2).collect::<Vec<_>>(),
        [
            "count may run",
            "  if sort changes intermediate/list_1.json"
        ]
    );
}

#[test]
fn of_a_stage_lists_the_batches_that_are_not_reused() {
    let project = Project::names();
    project.run_in_process();
    project.edit("workspace/inputs/list_2.json", "Cy", "Cyd");
    std::fs::remove_file(project.at("workspace/intermediate/list_1.json")).unwrap();
    std::fs::remove_file(project.at("workspace/inputs/list_10.json")).unwrap();
    let text = shown(&project, "sort");
    let text = text
        .lines()
        .filter(|line| !line.contains("changed ("))
        .collect::<Vec<_>>();
    assert_eq!(
        text,
        [
            "stage 1 sort: Sort each list",
            "2 batches, 0 up to date",
            "",
            "sort/list_1: will run",
            "  output intermediate/list_1.json was deleted",
            "",
            "sort/list_2: will run",
            "",
            "no longer produced, its outputs go to quarantine: list_10",
        ]
    );
}

#[test]
fn of_an_output_shows_where_it_comes_from() {
    let project = Project::names();
    project.run_in_process();
    let of = |path: &str| digest(&project, &format!("workspace/{path}"));
    let expected = format!(
        "outputs/total.json  {}\n\
         output `total` of count, made 2026-11-21 10:00:00Z by run RUN: unchanged since\n\n\
         built from\n  \
         intermediate/list_1.json  {}  made by sort/list_1\n    inputs/list_1.json  {}\n  \
         intermediate/list_2.json  {}  made by sort/list_2\n    inputs/list_2.json  {}\n  \
         intermediate/list_10.json  {}  made by sort/list_10\n    inputs/list_10.json  {}\n",
        of("outputs/total.json"),
        of("intermediate/list_1.json"),
        of("inputs/list_1.json"),
        of("intermediate/list_2.json"),
        of("inputs/list_2.json"),
        of("intermediate/list_10.json"),
        of("inputs/list_10.json"),
    );
    assert_eq!(shown(&project, "outputs/total.json"), expected);
    assert_eq!(shown(&project, "workspace/outputs/total.json"), expected);
    let absolute = project.at("workspace/outputs/total.json");
    assert_eq!(shown(&project, absolute.to_str().unwrap()), expected);

    project.write("workspace/outputs/total.json", "{}");
    assert!(shown(&project, "outputs/total.json").contains(": modified since: it was "));
    std::fs::remove_file(absolute).unwrap();
    assert!(shown(&project, "outputs/total.json").starts_with(
        "outputs/total.json does not exist\noutput `total` of count, made 2026-11-21 10:00:00Z by run RUN: deleted since\n"
    ));
}

#[test]
fn of_what_people_put_there_shows_who_reads_it() {
    let project = Project::names();
    let input = "workspace/inputs/list_2.json";
    let line = format!(
        "inputs/list_2.json  {}\nnot written by a stage\n",
        digest(&project, input)
    );
    assert_eq!(
        shown(&project, "inputs/list_2.json"),
        format!("{line}declared as input of sort\n")
    );
    project.run_in_process();
    assert_eq!(
        shown(&project, "inputs/list_2.json"),
        format!("{line}\nread by\n  sort/list_2\n")
    );
    let schema = format!(
        "project:schemas/sorted.schema.json  {}\nnot written by a stage\n\nread by\n  sort\n",
        digest(&project, "schemas/sorted.schema.json")
    );
    assert_eq!(shown(&project, "schemas/sorted.schema.json"), schema);
}

#[test]
fn what_is_not_known_is_an_error_with_the_nearest_names() {
    let project = Project::names();
    project.run_in_process();
    for (what, error) in [
        (
            "sort/list_3",
            "`sort/list_3` is not a stage, a batch or a known file: did you mean `sort/list_1` or `sort/list_2` or `sort/list_10`?",
        ),
        (
            "outputs/totl.json",
            "`outputs/totl.json` is not a stage, a batch or a known file: did you mean `outputs/total.json`?",
        ),
        (
            "%",
            "`%` is not a stage, a batch or a known file: name a stage, a batch as STAGE/BATCH, or a file of the workspace",
        ),
    ] {
        assert_eq!(
            why(&project.request(), what).unwrap_err().to_string(),
            error
        );
    }
}
