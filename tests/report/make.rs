//! Makes the reports of records with the shipped filter and templates, as the pipeline's last stage does.

use std::io::Cursor;

use milepost_core::expr::jq::Jq;
use milepost_core::expr::template::Template;
use milepost_engine::steps::workbook::{Workbook, file_feed, write_workbook};
use milepost_engine::steps::worker::JqWorkers;
use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
use milepost_formats::xlsx::XlsxInfo;
use serde_json::{Map, Value, json};

/// What the last stage writes.
pub struct Reports {
    pub report: Value,
    pub plans: Value,
    pub svg: String,
    pub markdown: String,
    pub xlsx: Vec<u8>,
    pub pdf: Vec<u8>,
}

/// Runs filter, workbook and template over the records.
pub fn make(records: &[Value], mut scope: Map<String, Value>) -> Reports {
    let read = |path: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(root.join(path)).unwrap()
    };
    let names: Vec<String> = scope.keys().cloned().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let values: Vec<Value> = scope.values().cloned().collect();
    let jq = Jq::compile("filters/report.jq", &read("filters/report.jq"), &names).unwrap();
    let mut inputs = records.iter().cloned().map(Ok);
    let report = jq
        .stream(Value::Null, &values, &mut inputs)
        .unwrap()
        .remove(0);
    scope.insert("report".to_owned(), report.clone());
    let jq = Jq::compile("filters/plans.jq", &read("filters/plans.jq"), &names).unwrap();
    let mut inputs = records.iter().cloned().map(Ok);
    let plans = jq
        .stream(Value::Null, &values, &mut inputs)
        .unwrap()
        .remove(0);
    scope.insert("plans".to_owned(), plans.clone());

    // Without an earlier revision.
    scope.insert("changes".to_owned(), Value::Null);
    scope.insert("changes_by_type".to_owned(), Value::Null);

    let date = Some(jiff::civil::date(2026, 11, 21));
    let names: Vec<String> = scope.keys().cloned().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut workbook = Workbook::parse(
        "templates/report.xlsx.toml",
        &read("templates/report.xlsx.toml"),
    )
    .unwrap()
    .compile(&names)
    .unwrap();
    workbook.leave_out(|name| name == "changes");
    let all = json!({"elements": records, "count": records.len()}).to_string();
    let mut xlsx = Cursor::new(Vec::new());
    let mut feed = file_feed(|_| Ok(all.as_bytes()));
    let info = XlsxInfo {
        title: "Quantities of büro".to_owned(),
        date,
        ..XlsxInfo::default()
    };
    write_workbook(
        &workbook,
        &Value::Object(scope.clone()),
        &mut *feed,
        &info,
        &JqWorkers::default(),
        2,
        &mut xlsx,
    )
    .unwrap();

    let render = |path: &str, scope: &Map<String, Value>| {
        let template = Template::compile(path, &read(path)).unwrap();
        template.render(&Value::Object(scope.clone())).unwrap()
    };
    let svg = render("templates/plans.svg", &scope);
    let markdown = render("templates/report.md", &scope);
    let info = PdfInfo {
        title: "Quantities of büro".to_owned(),
        date,
        ..PdfInfo::default()
    };
    let pdf = markdown_to_pdf(&markdown, &info).unwrap();
    Reports {
        report,
        plans,
        svg,
        markdown,
        xlsx: xlsx.into_inner(),
        pdf,
    }
}
