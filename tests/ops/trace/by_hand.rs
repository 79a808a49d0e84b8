//! Corrections, accepted modifications, and files that are not what they were.

use super::{KEY, main_pipeline, of, traced, way};
use milepost_engine::ops::change::accept::{AcceptOptions, accept};
use milepost_engine::ops::trace::{FileCheck, StationKind, TraceOptions};
use milepost_formats::xlsx::{ColumnLayout, SheetLayout, XlsxInfo, XlsxWriter};
use serde_json::json;

const CLASSIFIED: &str = "workspace/intermediate/classified/batch_1_classified.json";

fn element_type() -> TraceOptions {
    TraceOptions {
        field: Some("element_type".to_owned()),
        ..of(KEY)
    }
}

#[test]
fn a_correction_has_its_person_and_its_line() {
    let project = main_pipeline();
    let table = "workspace/inputs/corrections.csv";
    let question = "6007ffe21c09";
    let rows = format!(
        "{}{KEY},,element_type,foundation_slab,Ada,bears the slab\n,{question},function,structural,Bo,all of them\n",
        project.read(table)
    );
    project.write(table, rows);
    project.run_in_process();
    let data = traced(&project, &element_type());
    assert_eq!(
        &way(&data, "element_type")[..4],
        [
            "record intermediate/classified_all.json:3: foundation_slab",
            "correction of function inputs/corrections.csv:3",
            "correction of element_type inputs/corrections.csv:2",
            "record intermediate/classified/batch_1_classified.json:3: other",
        ]
    );
    let corrections = data
        .stations
        .iter()
        .filter_map(|station| match &station.about {
            StationKind::Correction(correction) => Some(json!(correction)),
            _ => None,
        });
    assert_eq!(
        corrections.collect::<Vec<_>>(),
        [
            json!({"field": "function", "from": "other", "to": "structural", "who": "Bo", "why": "all of them", "line": 3}),
            json!({"field": "element_type", "from": "other", "to": "foundation_slab", "who": "Ada", "why": "bears the slab", "line": 2}),
        ]
    );
    // The row is removed: the record still has it, and the table has not.
    let header = project.read(table).lines().next().unwrap().to_owned();
    project.write(table, header + "\n");
    let data = traced(&project, &element_type());
    assert_eq!(
        way(&data, "row")[2],
        "correction of element_type inputs/corrections.csv: the table has no such row any more"
    );
    assert_eq!(
        data.stations[2].file.as_ref().unwrap().check,
        FileCheck::Modified
    );
}

#[test]
fn an_imported_correction_names_the_workbook() {
    let project = main_pipeline();
    project.run_in_process();
    let header = [
        "GlobalId",
        "Question",
        "Correct element type",
        "Correct material",
        "Correct volume [m³]",
        "Who",
        "Why",
    ];
    let column = |header: &&str| ColumnLayout {
        header: (*header).to_owned(),
        ..ColumnLayout::default()
    };
    let layout = SheetLayout {
        name: "Review".to_owned(),
        columns: header.iter().map(column).collect(),
        ..SheetLayout::default()
    };
    let mut workbook = XlsxWriter::new(&XlsxInfo::default()).unwrap();
    let mut sheet = workbook.sheet(layout).unwrap();
    let row = [
        json!(KEY),
        json!(null),
        json!(null),
        json!(null),
        json!(8.5),
        json!("Ada"),
        json!("measured"),
    ];
    sheet.row(&row).unwrap();
    sheet.finish().unwrap();
    let file = std::fs::File::create(project.at("edited.xlsx")).unwrap();
    workbook.save(file).unwrap();
    let (code, text) = project.milepost(&["import-review", "edited.xlsx"]);
    assert_eq!(code, 0, "{text}");
    project.run_in_process();
    let found = way(&traced(&project, &of(KEY)), "imported");
    let (before, after) = found[1].split_once(": from edited.xlsx, ").unwrap();
    assert_eq!(before, "correction of volume_m3 inputs/corrections.csv:2");
    assert_eq!(
        after.split_once("Z: ").unwrap().1,
        format!("Review!E2: volume_m3 of global_id {KEY} is `8.5` (Ada: measured)")
    );
}

#[test]
fn a_modification_is_reported_before_and_after_it_is_accepted() {
    let project = main_pipeline();
    project.run_in_process();
    project.edit(
        CLASSIFIED,
        "\"element_type\":\"other\"",
        "\"element_type\":\"ramp\"",
    );
    let data = traced(&project, &element_type());
    assert_eq!(
        way(&data, "element_type")[1],
        "record intermediate/classified/batch_1_classified.json:3: ramp"
    );
    let checks = |data: &milepost_engine::ops::trace::Trace| -> Vec<FileCheck> {
        let files = data.stations.iter().filter_map(|it| it.file.as_ref());
        files.map(|file| file.check).collect()
    };
    let (same, modified) = (FileCheck::Matches, FileCheck::Modified);
    assert_eq!(checks(&data), [same, modified, same, same, same]);

    let options = AcceptOptions {
        targets: vec!["classify/batch_1".to_owned()],
        why: "seen on site".to_owned(),
        who: Some("Ada".to_owned()),
        changes: Vec::new(),
        expected: None,
    };
    accept(&project.request(), &options).unwrap();
    let data = traced(&project, &element_type());
    assert_eq!(checks(&data), [same, FileCheck::Accepted, same, same, same]);
    let found = way(&data, "accepted");
    assert!(
        found[2].starts_with(
            "modified by hand intermediate/classified/batch_1_classified.json: accepted by Ada on 2026-11-21 10:00:00Z: seen on site; "
        ),
        "{}",
        found[2]
    );
    // What `generate` made was made of the bytes before.
    let read = data.stations[1].file.as_ref().unwrap();
    assert_eq!(
        read.read_as,
        data.stations
            .iter()
            .find_map(|station| match &station.about {
                StationKind::Modification(one) => one.from,
                _ => None,
            })
    );
}

#[test]
fn a_missing_file_is_named_and_the_way_goes_around_it() {
    let project = main_pipeline();
    project.run_in_process();
    project.remove(CLASSIFIED);
    let data = traced(&project, &of(KEY));
    assert_eq!(
        way(&data, ""),
        [
            "record intermediate/classified_all.json:3",
            "element as it was read intermediate/parsed_data.json:4",
            "line of the input inputs/sample.ifc:98",
            "note: intermediate/classified/batch_1_classified.json is missing, so it was not searched",
        ]
    );
    let data = traced(
        &project,
        &of("intermediate/classified/batch_1_classified.json"),
    );
    let found = &way(&data, "digest")[0];
    assert!(
        found.starts_with(
            "file intermediate/classified/batch_1_classified.json: the file is missing; recorded "
        ),
        "{found}"
    );
    project.write(
        "workspace/intermediate/classified_all.json",
        "{\"elements\": [",
    );
    let data = traced(&project, &of(KEY));
    assert_eq!(
        way(&data, "").last().unwrap(),
        "note: the outputs of classify do not have this key"
    );
}
