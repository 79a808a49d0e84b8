//! The published schemas are what the code gives, and what is written and told is of them.

use crate::support::Project;
use milepost_engine::ops::inspect::log::{LogOptions, log};
use milepost_engine::ops::run::RunOptions;
use milepost_engine::ops::schema::{FOLDER, NAMES, schema, schemas, text, write};
use milepost_engine::ops::trace::{TraceOptions, trace};
use milepost_store::store::disk::Disk;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn what_is_committed_is_what_the_code_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    if std::env::var_os("MILEPOST_WRITE_SCHEMAS").is_some() {
        write(&Disk::real(), &folder).unwrap();
    }
    for (name, schema) in schemas() {
        let committed = std::fs::read_to_string(folder.join(format!("{name}.schema.json")));
        assert!(
            committed.is_ok_and(|committed| committed == text(&schema)),
            "{FOLDER}/{name}.schema.json is not what the code gives: run the tests once with MILEPOST_WRITE_SCHEMAS=1"
        );
    }
}

#[test]
fn the_folder_holds_just_the_schemas_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let mut there: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    let names: Vec<&str> = schemas().into_keys().collect();
    assert_eq!(names, NAMES);
    let known: Vec<String> = names
        .iter()
        .map(|name| format!("{name}.schema.json"))
        .collect();
    assert_eq!(
        there, known,
        "a schema that the code no longer gives is removed by hand"
    );
}

#[test]
fn they_are_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::real();
    assert_eq!(write(&disk, folder.path()).unwrap().len(), schemas().len());
    assert_eq!(write(&disk, folder.path()).unwrap(), Vec::<String>::new());
    assert_eq!(schema("stage.schema.json").unwrap(), schemas()["stage"]);
    let error = schema("stages").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no schema `stages`; available: accept, approve, checkpoint, "),
        "{error}"
    );
}

fn assert_is(name: &str, value: &Value) {
    let schema = schema(name).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{name}: {value}");
}

#[test]
fn everything_that_is_written_and_told_is_of_its_schema() {
    let project = Project::names();
    project.run_in_process_with(&RunOptions {
        limit: Some(1),
        ..project.wanted()
    });
    project.run_in_process();
    project.edit("workspace/inputs/list_2.json", "Cy", "Cyd");
    project.edit("workspace/outputs/total.json", "5", "6");
    let request = project.request();
    let read = |path: &str| -> Value { serde_json::from_str(&project.read(path)).unwrap() };
    assert_is("checkpoint", &read("workspace/stage_1_complete.json"));
    assert_is("progress", &read("workspace/sort_progress.json"));
    assert_is("workspace", &read("workspace/.milepost/workspace.json"));
    let journal = log(&request, &LogOptions::default()).unwrap();
    assert_is("log", &json!(journal));
    for record in &journal.records {
        assert_is("record", &json!(record));
    }
    assert_is(
        "status",
        &json!(milepost_engine::ops::inspect::status::status(&request).unwrap()),
    );
    assert_is(
        "plan",
        &json!(milepost_engine::ops::plan::plan(&request, &project.wanted()).unwrap()),
    );
    assert_is(
        "verify",
        &json!(milepost_engine::ops::inspect::verify::verify(&request, true).unwrap()),
    );
    for what in [
        "sort",
        "sort/list_2",
        "count",
        "outputs/total.json",
        "inputs/list_1.json",
    ] {
        assert_is(
            "why",
            &json!(milepost_engine::ops::why::why(&request, what).unwrap()),
        );
    }
    let options = TraceOptions {
        what: "outputs/total.json".to_owned(),
        ..TraceOptions::default()
    };
    assert_is("trace", &json!(trace(&request, &options).unwrap()));
}
