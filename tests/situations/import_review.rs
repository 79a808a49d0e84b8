//! `milepost import-review`: what a person typed into a workbook becomes rows of the corrections.

use super::question_ids::merged;
use crate::support::Project;
use milepost_core::base::digest::Digest;
use milepost_formats::xlsx::{ColumnLayout, SheetLayout, XlsxInfo, XlsxWriter};
use serde_json::{Value, json};
use std::fs::File;

const BOOK: &str = r#"
[[sheet]]
name = "Review"
rows = ".all.elements[]"
columns = [["Question", ".question"], ["Id", "null"], ["Word", ".word"], ["Correct word", "null"], ["Correct size", "null"], ["Who", "null"], ["Why", "null"]]

[sheet.review]
shared_key = "Question"
key = "Id"
who = "Who"
why = "Why"
into = "fixes"

[sheet.review.fields]
"Correct word" = { field = "word", labels = ".labels.word" }
"Correct size" = "size"
"#;

const LABELS: &str = r#"
[word]
anna = { en = "Anna the First", de = "Anna die Erste" }
annie = "The other"
bob = "The other"
"#;

/// The headers that an import needs.
pub const HEADER: [&str; 7] = [
    "Why",
    "Who",
    "Correct size",
    "Correct word",
    "Word",
    "Id",
    "Question",
];

/// A project that ran, with a workbook to fill in.
pub fn project(fixes: &str) -> Project {
    let mut project = merged(fixes);
    project.env("USER", "ada");
    project.edit(
        "stages/3_join.toml",
        "shared_key = \"question\"\n",
        "shared_key = \"question\"\nout = \"all\"\n\n[[step]]\nxlsx = \"templates/book.xlsx.toml\"\nout = \"book\"\n",
    );
    project.edit("stages/3_join.toml", "[step]\nmerge", "[[step]]\nmerge");
    project.edit(
        "stages/3_join.toml",
        "[inputs.fixes]\n",
        "[inputs.labels]\npath = \"project:rules/labels.toml\"\n\n[inputs.fixes]\nschema = \"schemas/fix.schema.json\"\ncolumns = { id = \"string\", question = \"string?\", field = \"string\", value = \"string\", who = \"string\", why = \"string\" }\n",
    );
    project.edit(
        "stages/3_join.toml",
        "[outputs]\n",
        "[outputs]\nbook = \"outputs/book.xlsx\"\n",
    );
    project.write("templates/book.xlsx.toml", BOOK);
    project.write("rules/labels.toml", LABELS);
    project.write(
        "schemas/fix.schema.json",
        r#"{"properties": {"field": {"enum": ["word", "size"]}, "who": {"type": "string"}}, "if": {"properties": {"field": {"const": "size"}}}, "then": {"properties": {"value": {"pattern": "^[0-9.]*$"}}}}"#,
    );
    project
        .run(&[])
        .expect(0, &["ask/batch_1", "join", "split"]);
    project
}

/// Writes a workbook with these rows below the headers.
pub fn workbook(project: &Project, header: &[&str], rows: &[Value]) {
    let mut workbook = XlsxWriter::new(&XlsxInfo::default()).unwrap();
    let column = |header: &&str| ColumnLayout {
        header: (*header).to_owned(),
        ..ColumnLayout::default()
    };
    let layout = SheetLayout {
        name: "Review".to_owned(),
        columns: header.iter().map(column).collect(),
        ..SheetLayout::default()
    };
    let mut sheet = workbook.sheet(layout).unwrap();
    for row in rows {
        sheet.row(row.as_array().unwrap()).unwrap();
    }
    sheet.finish().unwrap();
    let file = File::create(project.at("edited.xlsx")).unwrap();
    workbook.save(file).unwrap();
}

pub fn ann() -> String {
    Digest::of(r#"{"name":"Ann"}"#).short()
}

fn import(project: &Project, more: &[&str]) -> (i32, String) {
    project.milepost(&[&["import-review", "edited.xlsx"], more].concat())
}

const EMPTY: &str = "id,question,field,value,who,why\n";
const FIXES: &str = "workspace/inputs/fixes.csv";

#[test]
fn values_become_corrections_once_and_the_next_run_applies_them() {
    let project = project("id;field;value;who;why\r\n2;size;3;Bo;\"a; b\"\r\n");
    let ann = ann();
    let rows = [
        json!([
            "heard",
            "Cy",
            null,
            "anna\u{a0}the  First",
            "Ann",
            null,
            ann
        ]),
        json!([null, null, 0.25, null, "Ann", "3", ann]),
        json!([null, null, null, null, "Bo", null, "0123456789ab"]),
        json!(["seen", "", "3", "", "", "2", ""]),
    ];
    workbook(&project, &HEADER, &rows);
    let (code, text) = import(&project, &["--why", "measured"]);
    assert_eq!(
        (code, text),
        (
            0,
            format!(
                "imported 2 corrections from edited.xlsx, sheet Review, into inputs/fixes.csv\n         Review!D2: word of question {ann} is `anna` (Cy: heard)\n         Review!C3: size of id 3 is `0.25` (ada: measured)\nskipped  1 correction already in inputs/fixes.csv\n         Review!C5: size of id 2 is `3` (ada: seen)\nnext     milepost run  apply the corrections\n"
            )
        )
    );
    let table = format!(
        "id;field;value;who;why;question\r\n2;size;3;Bo;\"a; b\";\r\n;word;anna;Cy;heard;{ann}\r\n3;size;0.25;ada;measured;\r\n"
    );
    assert_eq!(project.read(FIXES), table);
    let lines = [
        format!("Review!D2: word of question {ann} is `anna` (Cy: heard)"),
        "Review!C3: size of id 3 is `0.25` (ada: measured)".to_owned(),
    ];
    let (_, log) = project.milepost(&["log"]);
    assert!(
        log.contains(
            "imported 2 corrections from edited.xlsx, sheet Review, into inputs/fixes.csv\n"
        ) && log.contains(&format!("    {}\n    {}\n", lines[0], lines[1])),
        "{log}"
    );
    let records = project.records();
    let kind = |record: &&Value| record["kind"] == "corrections_imported";
    let event = records.iter().rfind(kind).unwrap();
    assert_eq!(
        event["data"],
        json!({
            "file": "edited.xlsx", "into": "inputs/fixes.csv", "added": 2, "corrections": lines,
            "from": Digest::of("id;field;value;who;why\r\n2;size;3;Bo;\"a; b\"\r\n"), "to": Digest::of(&table),
        })
    );
    let (code, text) = import(&project, &["--why", "measured"]);
    assert_eq!(code, 0);
    assert_eq!(project.records().iter().filter(kind).count(), 1);
    assert!(
        text.starts_with("skipped  3 corrections already in inputs/fixes.csv\n"),
        "{text}"
    );
    assert_eq!(project.read(FIXES), table);

    project.run(&[]).expect(0, &["join"]);
    let all = project.json("workspace/outputs/all.json");
    let of = |field: &str| -> Vec<Value> {
        let elements = all["elements"].as_array().unwrap().iter();
        elements.map(|element| element[field].clone()).collect()
    };
    assert_eq!(of("word"), ["anna", "Bo", "anna"]);
    assert_eq!(of("size"), [json!(1), json!(3), json!(0.25)]);
}

#[test]
fn one_refused_cell_imports_nothing_and_all_are_named() {
    let ann = ann();
    let table = format!("id,question,field,value,who,why\n,{ann},word,annie,Bo,heard\n");
    let project = project(&table);
    let rows = [
        json!(["x", null, 2, null, null, "1", null]),
        json!(["x", null, "many", null, null, "2", null]),
        json!(["x", null, "1,5", null, null, "3", null]),
        json!([null, null, 1, null, null, "4", null]),
        json!(["x", null, 1, null, null, null, null]),
        json!(["x", null, null, "Anna the Fist", null, "1", null]),
        json!(["x", null, null, "The other", null, "2", null]),
        json!(["x", null, null, "bob", null, null, ann]),
        json!(["x", null, 3, null, null, "1", null]),
    ];
    workbook(&project, &HEADER, &rows);
    let (code, text) = import(&project, &[]);
    assert_eq!(
        (code, text),
        (
            1,
            format!(
                "error: nothing was imported:\n  Review!C4: expected a number, found the text `1,5`: write it with a decimal point\n  Review!A5: expected a reason: write one into the cell, or give `--why TEXT` for all rows without one\n  Review!6: expected a value in `Id` or `Question`, found none\n  Review!D7: expected a value of `word`, found `Anna the Fist`; did you mean `Anna the First`?\n  Review!D8: `The other` is the label of annie and bob: write one of them\n  Review!D9: `word` of `{ann}` is `bob`, but inputs/fixes.csv:2 sets `annie`: change or remove one of them\n  Review!C10: `size` of `1` is `3`, but Review!C2 sets `2`: change or remove one of them\n  Review!C3: value: \"many\" does not match ^[0-9.]*$\n"
            )
        )
    );
    assert_eq!(project.read(FIXES), table);
}

#[test]
fn a_workbook_that_cannot_be_read_is_refused_with_the_reason() {
    let project = project(EMPTY);
    let said = || {
        let (code, text) = import(&project, &[]);
        assert_eq!(code, 1, "{text}");
        text.trim_end().to_owned()
    };
    workbook(&project, &HEADER[1..], &[]);
    let file = project.at("edited.xlsx").display().to_string();
    let found = said().replace(&file, "edited.xlsx");
    assert_eq!(
        found,
        "error: edited.xlsx: Review: missing column `Why` in the header; found `Who`, `Correct size`, `Correct word`, `Word`, `Id`, `Question`"
    );
    project.write("edited.xlsx", "global_id,field\n");
    assert!(
        said().contains("it is not an Excel workbook: "),
        "{}",
        said()
    );
    project.remove("edited.xlsx");
    assert!(said().contains("No such file"), "{}", said());
    workbook(
        &project,
        &HEADER,
        &[json!(["x", "y", null, null, null, "1", null])],
    );
    let (code, text) = import(&project, &[]);
    assert_eq!(
        (code, text.as_str()),
        (
            0,
            "nothing to import from edited.xlsx, sheet Review: no correction is filled in\n"
        )
    );
    assert_eq!(project.read(FIXES), EMPTY);
}

#[test]
fn the_workbook_of_a_stage_that_was_edited_in_place_is_replaced() {
    let project = project(EMPTY);
    let rows = [json!(["heard", "Cy", null, "anna", "Ann", null, ann()])];
    workbook(&project, &HEADER, &rows);
    project.rename("edited.xlsx", "workspace/outputs/book.xlsx");
    let (code, text) = project.milepost(&["import-review", "workspace/outputs/book.xlsx"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.ends_with("next     milepost run --force join  apply the corrections; the edited workspace/outputs/book.xlsx goes to quarantine\n"),
        "{text}"
    );
    assert_eq!(project.run(&[]).code, 5);
    project.run(&["--force", "join"]).expect(0, &["join"]);
    assert_eq!(
        project.json("workspace/outputs/all.json")["elements"][0]["word"],
        "anna"
    );
}
