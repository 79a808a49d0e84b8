//! Workbooks at their limits: tabs that go on, failing cells, wrong declarations.

use std::io::Cursor;

use milepost_engine::steps::workbook::{
    Workbook, WorkbookError, WrittenSheet, file_feed, workbook_schema, write_workbook,
};
use milepost_engine::steps::worker::JqWorkers;
use milepost_formats::xlsx::XlsxInfo;
use serde_json::{Map, Value, json};

use super::xlsx;

fn write(
    text: &str,
    scope: Value,
    records: Value,
    info: &XlsxInfo,
) -> Result<(Vec<u8>, Vec<WrittenSheet>), WorkbookError> {
    let Value::Object(scope): Value = scope else {
        panic!("a scope is an object");
    };
    let scope: Map<String, Value> = scope;
    let names: Vec<&str> = scope.keys().map(String::as_str).collect();
    let workbook = Workbook::parse("w.toml", text)?.compile(&names)?;
    let records = records.to_string();
    let mut out = Cursor::new(Vec::new());
    let written = write_workbook(
        &workbook,
        &scope,
        &mut *file_feed(|_| Ok(records.as_bytes())),
        info,
        &JqWorkers::default(),
        &mut out,
    )?;
    Ok((out.into_inner(), written))
}

const ALL: &str = "[[sheet]]\nname = 'Elements'\nin = 'all'\nstream = '.elements'\n\
    columns = [['Id', '.id'], ['Twice', '.n * 2'], ['Of', '$params.of']]\n\
    [[sheet]]\nname = 'Count'\nrows = '[[\"n\", .params.of], [\"m\", 2]]'\n";

#[test]
fn a_sheet_goes_on_in_further_tabs_with_its_header() {
    let records: Vec<Value> = (0..7)
        .map(|n| json!({"id": format!("e{n}"), "n": n}))
        .collect();
    let info = XlsxInfo {
        rows_per_tab: Some(3),
        ..XlsxInfo::default()
    };
    let scope = json!({"params": {"of": 7}, "all": null});
    let (bytes, written) = write(ALL, scope, json!({"elements": records}), &info).unwrap();
    let row = |n: u32| vec![format!("'e{n}"), (n * 2).to_string(), "7".to_owned()];
    let head: Vec<String> = ["'Id", "'Twice", "'Of"].map(str::to_owned).into();
    assert_eq!(
        xlsx::sheets(&bytes),
        [
            (
                "Elements".to_owned(),
                vec![head.clone(), row(0), row(1), row(2)]
            ),
            (
                "Elements 2".to_owned(),
                vec![head.clone(), row(3), row(4), row(5)]
            ),
            ("Elements 3".to_owned(), vec![head, row(6)]),
            (
                "Count".to_owned(),
                vec![
                    vec!["'n".to_owned(), "7".to_owned()],
                    vec!["'m".to_owned(), "2".to_owned()]
                ]
            ),
        ]
    );
    assert_eq!(
        written,
        [
            WrittenSheet {
                sheet: "Elements".to_owned(),
                rows: 7
            },
            WrittenSheet {
                sheet: "Count".to_owned(),
                rows: 2
            },
        ]
    );
    assert!(xlsx::part(&bytes, "docProps/core.xml").contains("1980-01-01T00:00:00Z"));
}

#[test]
fn a_cell_that_fails_names_sheet_column_and_row() {
    let scope = json!({"params": {"of": 1}, "all": null});
    let info = XlsxInfo::default();
    let said = |records: Value| {
        write(ALL, scope.clone(), records, &info)
            .unwrap_err()
            .to_string()
    };
    let fails = said(json!({"elements": [{"id": "a", "n": 1}, {"id": "b", "n": {}}]}));
    assert!(
        fails.starts_with("w.toml: sheet \"Elements\", column \"Twice\", row 2: "),
        "{fails}"
    );
    let fails = said(json!({"elements": [7]}));
    assert_eq!(
        fails,
        "w.toml: sheet \"Elements\", column \"Id\", row 1: cannot take `.id` of a number"
    );
    let fails = said(json!({"records": []}));
    assert_eq!(fails, "all: the document has no `elements`");
}

#[test]
fn a_program_that_cannot_be_compiled_is_named_before_anything_is_written() {
    let text = "[[sheet]]\nname = 'A'\nrows = '.x[]'\ncolumns = [['B', '.b +']]\n";
    let said = Workbook::parse("w.toml", text)
        .unwrap()
        .compile(&["x"])
        .unwrap_err()
        .to_string();
    assert!(said.contains("w.toml: sheet \"A\", column \"B\""), "{said}");
    let said = Workbook::parse("w.toml", ALL)
        .unwrap()
        .compile(&["params"])
        .unwrap_err()
        .to_string();
    assert_eq!(
        said,
        "w.toml: sheet \"Elements\": `in = \"all\"` is no input or output of the stage; it has params"
    );
}

#[test]
fn what_a_workbook_needs_of_the_scope_is_known_beforehand() {
    let compiled = Workbook::parse("w.toml", ALL)
        .unwrap()
        .compile(&["params", "all"])
        .unwrap();
    let names: Vec<String> = compiled.names().into_iter().collect();
    assert_eq!(names, ["of", "params"]);
    let streamed: Vec<String> = compiled.streamed().into_iter().collect();
    assert_eq!(streamed, ["all"]);
}

#[test]
fn the_schema_of_workbooks_is_the_one_of_the_code_and_takes_the_shipped_one() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("schemas/milepost/workbook.schema.json");
    let whole = serde_json::to_string_pretty(&workbook_schema()).unwrap() + "\n";
    if std::env::var_os("MILEPOST_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == whole,
        "{} is not what the code says: run the tests once with MILEPOST_WRITE_SCHEMAS=1",
        path.display()
    );
    let shipped = std::fs::read_to_string(root.join("templates/report.xlsx.toml")).unwrap();
    let shipped: Value = toml::from_str(&shipped).unwrap();
    let found: Vec<String> = jsonschema::validator_for(&workbook_schema())
        .unwrap()
        .iter_errors(&shipped)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}
