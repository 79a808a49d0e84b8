//! Workbooks at their limits: tabs that go on, failing cells, wrong declarations.

use std::io::Cursor;

use milepost_engine::steps::workbook::{
    Workbook, WorkbookError, WrittenSheet, file_feed, workbook_schema, write_workbook,
};
use milepost_engine::steps::worker::JqWorkers;
use milepost_formats::xlsx::XlsxInfo;
use serde_json::{Value, json};

use super::xlsx;

fn write(
    text: &str,
    scope: Value,
    records: Value,
    info: &XlsxInfo,
) -> Result<(Vec<u8>, Vec<WrittenSheet>), WorkbookError> {
    let names: Vec<&str> = scope
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let workbook = Workbook::parse("w.toml", text)?.compile(&names)?;
    let records = records.to_string();
    let mut out = Cursor::new(Vec::new());
    let written = write_workbook(
        &workbook,
        &scope,
        &mut *file_feed(|_| Ok(records.as_bytes())),
        info,
        &JqWorkers::default(),
        2,
        &mut out,
    )?;
    Ok((out.into_inner(), written))
}

const ALL: &str = "[[sheet]]\nname = 'Elements'\nin = 'all'\nstream = '.elements'\n\
    columns = [['Id', '.id'], ['Twice', '.n * 2'], ['Of', '$params.of']]\n\
    [[sheet]]\nname = 'Count'\nrows = '[[\"n\", .params.of], [\"m\", 2]]'\n";

#[test]
fn a_sheet_continues_in_further_tabs_with_its_header() {
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

/// A sheet of sums that stands before the sheet that it sums, which continues in a second tab.
const SUMS: &str = "title = '.params.title'\n\
    [formulas]\nall = { sum = 'm³', of = 'Rows' }\n\
    [[sheet]]\nname = 'Sums'\nrows = '.params.sums[]'\ntotal = 'Total'\n\
    columns = [['Kind', '.kind'], ['Rows', '.count', { total = true, formula = { of = 'Rows', where = { Kind = 'Kind' } } }], \
    ['m³', '.sum', { format = '0.00', total = true, formula = { sum = 'm³', of = 'Rows', where = { Kind = 'Kind', Side = { text = 'in' } } } }], \
    ['All', '.all', { formula = '.named' }], ['Pick', 'null', { choices = { sheet = 'Kinds', column = 'Id' } }], \
    ['Empty', 'null', { hide_empty = true }]]\n\
    chart = { kind = 'bar', label = 'Kind', value = 'Empty' }\n\
    [[sheet]]\nname = 'Rows'\nin = 'all'\nstream = '.elements'\n\
    columns = [['Kind', '.kind'], ['Side', '.side'], ['m³', '.m3']]\n\
    [[sheet]]\nname = 'Kinds'\nrows = '\"wall\", \"slab\"'\ncolumns = [['Id', '.']]\n";

fn sums(sums: Value, rows_per_tab: u32) -> Vec<u8> {
    let row = |kind: &str, m3: f64| json!({"kind": kind, "side": "in", "m3": m3});
    let records = json!({"elements": [row("wall", 1.5), row("slab", 2.0), row("wall", 0.25)]});
    let info = XlsxInfo {
        rows_per_tab: Some(rows_per_tab),
        ..XlsxInfo::default()
    };
    let scope = json!({"params": {"sums": sums, "title": "T"}, "all": null});
    write(SUMS, scope, records, &info).unwrap().0
}

#[test]
fn figures_stand_beside_the_formulas_that_they_follow_from() {
    let bytes = sums(
        json!([
            {"kind": "wall", "count": 2, "sum": 1.75, "all": 3.75, "named": "all"},
            {"kind": "slab", "count": 1, "sum": null, "all": 1, "named": null},
        ]),
        2,
    );
    let names: Vec<String> = xlsx::sheets(&bytes)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["Sums", "Rows", "Rows 2", "Kinds"]);
    let sheet = xlsx::part(&bytes, "xl/worksheets/sheet1.xml");
    let formulas: Vec<&str> = sheet
        .split("<f>")
        .skip(1)
        .map(|rest| rest.split("</c>").next().unwrap())
        .collect();
    assert_eq!(
        formulas,
        [
            "COUNTIFS(Rows!$A$2:$A$3,$A2)+COUNTIFS('Rows 2'!$A$2:$A$2,$A2)</f><v>2</v>",
            "SUMIFS(Rows!$C$2:$C$3,Rows!$A$2:$A$3,$A2,Rows!$B$2:$B$3,\"in\")+\
             SUMIFS('Rows 2'!$C$2:$C$2,'Rows 2'!$A$2:$A$2,$A2,'Rows 2'!$B$2:$B$2,\"in\")</f><v>1.75</v>",
            "SUM(Rows!$C$2:$C$3)+SUM('Rows 2'!$C$2:$C$2)</f><v>3.75</v>",
            "COUNTIFS(Rows!$A$2:$A$3,$A3)+COUNTIFS('Rows 2'!$A$2:$A$2,$A3)</f><v>1</v>",
            "SUBTOTAL(9,B2:B3)</f><v>3</v>",
            "SUBTOTAL(9,C2:C3)</f><v>1.75</v>",
        ]
    );
    for wanted in [
        "<autoFilter ref=\"A1:F3\"/>",
        "<dataValidation type=\"list\" allowBlank=\"1\" showInputMessage=\"1\" showErrorMessage=\"1\" sqref=\"E2:E3\">\
         <formula1>Kinds!$A$2:$A$3</formula1>",
        "hidden=\"1\"",
    ] {
        assert!(sheet.contains(wanted), "{wanted}: {sheet}");
    }
    // A chart without a number is left out.
    assert!(!sheet.contains("<drawing"));
}

/// Whatever a model says, no cell becomes a formula that it wrote, and no condition counts other rows than those meant.
#[test]
fn a_value_never_becomes_a_formula() {
    let hostile = [
        json!({"formula": "HYPERLINK(\"http://x\")", "value": 1}),
        json!({"sum": "m³", "of": "Rows"}),
        json!("=1+1"),
        json!("*"),
        json!("<>wall"),
        json!("w?ll"),
        json!("01"),
        json!("$A2)+SUM(Rows!$C$2:$C$9"),
    ];
    let rows: Vec<Value> = hostile
        .iter()
        .map(|kind| json!({"kind": kind, "count": 2, "sum": 1.75, "all": kind, "named": null}))
        .collect();
    let bytes = sums(json!(rows), 20);
    let sheet = xlsx::part(&bytes, "xl/worksheets/sheet1.xml");
    let formulas: Vec<&str> = sheet
        .split("<f>")
        .skip(1)
        .map(|rest| rest.split("</f>").next().unwrap())
        .collect();
    assert_eq!(formulas, ["SUBTOTAL(9,B2:B9)", "SUBTOTAL(9,C2:C9)"]);
    let shown = &xlsx::sheets(&bytes)[0].1;
    assert_eq!(
        shown[1],
        [
            "'{\"formula\":\"HYPERLINK(\\\"http://x\\\")\",\"value\":1}",
            "2",
            "1.75",
            "'{\"formula\":\"HYPERLINK(\\\"http://x\\\")\",\"value\":1}"
        ]
    );
    assert_eq!(shown[3][0], "'=1+1");
}

#[test]
fn a_row_that_names_no_formula_of_the_file_is_an_error() {
    let scope = json!({"params": {"sums": [{"kind": "wall", "all": 1, "named": "most"}], "title": null}, "all": null});
    let said = write(SUMS, scope, json!({"elements": []}), &XlsxInfo::default());
    assert_eq!(
        said.unwrap_err().to_string(),
        "w.toml: sheet \"Sums\", column \"formula\", row 1: `[formulas]` has no \"most\"; it has all"
    );
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
        "w.toml: sheet \"Elements\": `in = \"all\"` is neither an input nor an output of the stage; it has params"
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
