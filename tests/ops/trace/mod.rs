//! `trace`: of elements, cells, values and files; in all five systems; after edits by hand; with keys that want to do harm.

mod by_hand;
mod hostile;
mod systems;

use crate::agents::audit::going_on;
use crate::agents::pipeline::{Served, speller, words};
use crate::support::{MAIN_PIPELINE, Project};
use milepost::view::trace::{notes, stations};
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::trace::{Trace, TraceOptions, trace};
use std::fmt::Write as _;

const KEY: &str = "2dlbQle3KLHU3pax$SELYb";

fn main_pipeline() -> Project {
    let project = Project::new(&[]);
    project.take(&MAIN_PIPELINE);
    project.take(&["workspace/inputs"]);
    project
}

fn traced(project: &Project, options: &TraceOptions) -> Trace {
    trace(&project.request(), options).unwrap_or_else(|error| panic!("{error}"))
}

fn of(what: &str) -> TraceOptions {
    TraceOptions {
        what: what.to_owned(),
        ..TraceOptions::default()
    }
}

/// Title and place of each station, with the line of this label, and the notes.
fn way(data: &Trace, label: &str) -> Vec<String> {
    let mut way = Vec::new();
    for station in stations(data, &Invocation::default()) {
        let line = station.lines.iter().find(|(it, _)| it == label);
        let line = line.map_or_else(String::new, |(_, text)| format!(": {text}"));
        way.push(format!("{} {}{line}", station.title, station.place));
    }
    way.extend(notes(data).into_iter().map(|note| format!("note: {note}")));
    way
}

#[test]
fn each_way_to_name_a_value_leads_to_the_same_line() {
    let project = main_pipeline();
    project.run_in_process();
    let field = Some("volume_m3".to_owned());
    let by_key = traced(
        &project,
        &TraceOptions {
            field: field.clone(),
            ..of(KEY)
        },
    );
    let record = [
        "record intermediate/classified_all.json:3: 7.497",
        "record intermediate/classified/batch_1_classified.json:3: 7.497",
        "batch classify/batch_1",
        "answer of classifier ",
        "record that the agent was asked about intermediate/batches/batch_1.json:3: empty (null)",
        "element as it was read intermediate/parsed_data.json:4: empty (null)",
        "line of the input inputs/sample.ifc:98",
    ];
    assert_eq!(way(&by_key, "volume_m3"), record);

    let report = TraceOptions {
        element: Some(KEY.to_owned()),
        field: field.clone(),
        ..of("outputs/report.xlsx")
    };
    let cell = TraceOptions {
        cell: Some("Elements!V3".to_owned()),
        ..of("workspace/outputs/report.xlsx")
    };
    let pointer = TraceOptions {
        pointer: Some("/elements/1/volume_m3".to_owned()),
        ..of("intermediate/classified_all.json")
    };
    for (options, first, label) in [
        (report, Some("file outputs/report.xlsx"), "volume_m3"),
        (
            cell,
            Some("cell Elements!V3 outputs/report.xlsx"),
            "volume_m3",
        ),
        (pointer, None, "/volume_m3"),
    ] {
        let expected: Vec<&str> = first.into_iter().chain(record).collect();
        assert_eq!(way(&traced(&project, &options), label), expected);
    }
}

#[test]
fn an_output_is_found_by_its_name() {
    let stage = |folder: &str| {
        format!(
            r#"[step]
jq = '[{{"id": "first"}}]'

[outputs]
made = {{ path = "outputs/{folder}/made.json", schema = false }}
"#
        )
    };
    let project = Project::new(&[
        ("milepost.toml", "name = \"named\"\n"),
        ("stages/1_a.toml", &stage("a")),
    ]);
    project.run_in_process();
    let (code, text) = project.milepost(&["trace", "made.json", "--pointer", "/0/id"]);
    assert_eq!(code, 0, "{text}");
    let first = text.lines().next().unwrap();
    assert_eq!(first, "made.json, in outputs/a/made.json");
    project.write("stages/2_b.toml", stage("b"));
    project.run_in_process();
    for (name, error) in [
        (
            "made.json",
            "`made.json` is not a file of the workspace: `--pointer` needs one. Outputs with this name: `outputs/a/made.json`, `outputs/b/made.json`",
        ),
        (
            "ade.json",
            "`ade.json` is not a file of the workspace: `--pointer` needs one",
        ),
    ] {
        assert_eq!(
            project.milepost(&["trace", name, "--pointer", "/0"]),
            (2, format!("error: {error}\n"))
        );
    }
}

#[test]
fn of_an_answer_shows_prompt_answer_and_question() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/outputs/all.json")["elements"],
        words(10)
    );
    let found = project.output("trace 3 --field word --agent speller=api --full");
    assert_eq!((found.code, found.err.as_str()), (0, ""));
    let expected = r#"word of 3

1. record  intermediate/words/batch_1.json:5
   word      NAME 1
   at        /3, byte 80
   word      + NAME 1
   left out  name, more
   digest    57a5a7c79675… matches the record
   written   by ask/batch_1 in run …, TIME
   record:
     {
       "id": 3,
       "word": "NAME 1"
     }

2. batch  ask/batch_1
   run    …, TIME
   took  …
   calls  1 call for $0.0005

3. answer of api  .milepost/calls/RUN/000001.request
   provider  anthropic claude-sonnet-4-5
   model     asked for claude-sonnet-4-5; answered by claude-sonnet-4-5-served
   call      RUN:1, TIME
   cost      $0.0005; 56 tokens in (5 of them cached), 20 out
   outcome   answered, …
   about it  {"id":"q2","word":"NAME 1"}
   prompt as sent:
     Write each name in capitals.
     
     
     Questions: [{"id":"q1","question":{"name":"name 0"}},{"id":"q2","question":{"name":"name 1"}},{"id":"q3","question":{"name":"name 2"}},{"id":"q4","question":{"name":"name 3"}}]
   answer as received:
     [{"id": "q1", "word": "NAME 0"}, {"id": "q2", "word": "NAME 1"}, {"id": "q3", "word": "NAME 2"}, {"id": "q4", "word": "NAME 3"}]

4. record that the agent was asked about  intermediate/batches/batch_1.json:5  (leads to 2)
   word      the record has no such field
   at        /elements/3, byte 119
   question  {"name":"name 1"}
   digest    7c0e332e4b03… matches the record
   written   by split in run …, TIME
   record:
     {
       "id": 3,
       "name": "name 1",
       "more": 3
     }

5. batch  split
   run   …, TIME
   took  …

6. file  inputs/things.json
   digest  c9f5efececce… matches the record

note: cannot locate the element in the inputs of split; following all its inputs
"#;
    assert_eq!(steady(&project, &found.out), expected);
    let schema = milepost_engine::ops::schema::schema("trace").unwrap();
    let json = project.output("trace 3 --field word --agent speller=api --json");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        jsonschema::validate(&schema, &json).map_err(|error| error.to_string()),
        Ok(())
    );
}

#[test]
fn an_element_without_a_valid_answer_shows_what_was_answered() {
    let (project, _served) = going_on("name 1\n");
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 3);
    assert_eq!(
        way(&traced(&project, &of("3")), "failed"),
        [
            "batch ask/batch_1: SCHEMA: q2 has no valid answer after 3 requests",
            &format!("answer of api {}", request(&project, 1)),
            &format!("answer of api {}", request(&project, 2)),
            &format!("answer of api {}", request(&project, 3)),
            "record intermediate/batches/batch_1.json:5",
            "batch split ",
            "file inputs/things.json",
            "note: the outputs of ask do not have this key",
            "note: cannot locate the element in the inputs of split; following all its inputs",
        ]
        .map(str::trim_end)
    );
}

/// The path of the request of a call.
fn request(project: &Project, number: u64) -> String {
    let run = project.records()[0]["run_id"].as_str().unwrap().to_owned();
    format!(".milepost/calls/{run}/{number:06}.request")
}

#[test]
fn an_answer_that_was_kept_from_another_workspace_is_named() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let other = ["--agent", "speller=api", "--workspace", "other"];
    std::fs::create_dir_all(project.at("other/inputs")).unwrap();
    let input = "workspace/inputs/things.json";
    std::fs::copy(project.at(input), project.at("other/inputs/things.json")).unwrap();
    assert_eq!(project.milepost(&other).0, 0);
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    let data = traced(&project, &of("3"));
    assert_eq!(
        &way(&data, "record")[1..3],
        [
            "batch ask/batch_1",
            "answer from another workspace : in the workspace of that run: the project kept the answer",
        ]
    );
    // In that workspace, the call is there; its files are removed.
    let calls = project.at("other/.milepost/calls");
    for entry in std::fs::read_dir(calls).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    let (code, text) = project.milepost(&["trace", "3", "--workspace", "other"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("   prompt as sent:\n     no longer stored\n"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_found_is_an_error_that_says_where_it_was_searched() {
    let project = main_pipeline();
    project.run_in_process();
    let of_report = |cell: &str| TraceOptions {
        cell: Some(cell.to_owned()),
        ..of("outputs/report.xlsx")
    };
    let pointer = |pointer: &str| TraceOptions {
        pointer: Some(pointer.to_owned()),
        ..of("intermediate/classified_all.json")
    };
    for (options, error) in [
        (
            of("nobody"),
            "`nobody` is neither a file of the workspace nor a known element: the outputs of generate do not have it; \
             the outputs of classify do not have it; the outputs of batch do not have it; the outputs of parse do not have it",
        ),
        (of(""), "expected a key or a file, found nothing"),
        (
            TraceOptions {
                element: Some(KEY.to_owned()),
                ..of("outputs/other.xlsx")
            },
            "`outputs/other.xlsx` is not a file of the workspace: `--element` needs one",
        ),
        (
            TraceOptions {
                field: Some("name".to_owned()),
                ..of("outputs/report.pdf")
            },
            "`--field name` needs a key: `trace KEY`, or `trace FILE --element KEY`",
        ),
        (
            of_report("G12"),
            "`G12` is not a cell: write the sheet and the cell, such as `Elements!G12`",
        ),
        (
            pointer("elements"),
            "`elements` is not a JSON pointer: write one such as `/elements/12`",
        ),
        (
            pointer("/elements/300"),
            "`intermediate/classified_all.json` has no value at `/elements/300`",
        ),
        (
            pointer("/elements/3/colour"),
            "`intermediate/classified_all.json` has no value at `/elements/3/colour`",
        ),
    ] {
        let found = trace(&project.request(), &options).unwrap_err().to_string();
        assert_eq!(found, error);
    }
    let found = trace(&project.request(), &of_report("Nothing!A1"))
        .unwrap_err()
        .to_string();
    assert!(
        found.contains("there is no sheet `Nothing`; it has "),
        "{found}"
    );
    let pdf = TraceOptions {
        cell: Some("Elements!A1".to_owned()),
        ..of("outputs/report.pdf")
    };
    let found = trace(&project.request(), &pdf).unwrap_err().to_string();
    assert!(found.contains("it is not an Excel workbook"), "{found}");
}

#[test]
fn a_value_without_a_key_is_followed_by_its_files() {
    let project = main_pipeline();
    project.run_in_process();
    let files = [
        "batch generate",
        "file inputs/corrections.csv",
        "file inputs/sample.ifc",
        "file intermediate/classified/batch_1_classified.json",
        "batch classify/batch_1",
        "answer of classifier ",
        "file intermediate/classified/batch_2_classified.json",
        "batch classify/batch_2",
        "answer of classifier ",
        "file intermediate/classified/batch_3_classified.json",
        "batch classify/batch_3",
        "answer of classifier ",
        "file intermediate/parsed_data.json",
        "batch parse",
        "file project:rules/labels.toml",
        "file intermediate/batches/batch_1.json",
        "batch batch",
        "file intermediate/batches/batch_2.json",
        "file intermediate/batches/batch_3.json",
    ];
    let sum = TraceOptions {
        cell: Some("Summary!B4".to_owned()),
        ..of("outputs/report.xlsx")
    };
    let found = way(&traced(&project, &sum), "");
    let (first, rest) = found.split_first().unwrap();
    let (note, rest) = rest.split_last().unwrap();
    assert_eq!(first, "cell Summary!B4 outputs/report.xlsx");
    assert_eq!(rest, files);
    assert_eq!(
        note,
        "note: row 4 of the sheet Summary has no key of an element; following the files that the workbook was built from"
    );
    let volume = TraceOptions {
        cell: Some("By type!D4".to_owned()),
        ..of("outputs/report.xlsx")
    };
    let found = traced(&project, &volume);
    let cell = serde_json::to_value(&found.stations[0]).unwrap();
    assert_eq!(
        cell["formula"],
        "SUMIFS(Elements!$V$2:$V$301,Elements!$G$2:$G$301,$B4)"
    );
    let count = TraceOptions {
        pointer: Some("/count".to_owned()),
        ..of("intermediate/report.json")
    };
    let found = way(&traced(&project, &count), "at");
    let (first, rest) = found.split_first().unwrap();
    let (note, rest) = rest.split_last().unwrap();
    assert_eq!(first, "record intermediate/report.json:2: /count, byte 13");
    assert_eq!(rest, files);
    assert_eq!(
        note,
        "note: no `[conserve]` declares a key for `/count` in intermediate/report.json; following the files that it was built from"
    );
}

/// The text without ids of runs and times.
fn steady(project: &Project, text: &str) -> String {
    let run = project.records()[0]["run_id"].as_str().unwrap().to_owned();
    let mut steady = String::new();
    for line in text.replace(&run, "RUN").lines() {
        // A time is 20 characters and the `Z` that ends it.
        match line.find(", 20").filter(|_| line.ends_with('Z')) {
            Some(at) => writeln!(steady, "{}, TIME", &line[..at]).unwrap(),
            None => writeln!(steady, "{line}").unwrap(),
        }
    }
    steady
}
