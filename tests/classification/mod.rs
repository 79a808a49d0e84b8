//! How elements are classified: how good the rules are on models of others, and what filters and schemas promise.

mod filters;
mod measure;
mod schemas;
mod unseen;

use std::path::Path;

use milepost_agents::rules::Rules;
use milepost_core::expr::jq::Jq;
use milepost_formats::ifc::extract;
use serde_json::Value;

/// A file of the project.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn rules() -> Rules {
    Rules::parse("rules/elements.toml", &file("rules/elements.toml")).unwrap()
}

fn question() -> Jq {
    Jq::compile("filters/question.jq", &file("filters/question.jq"), &[]).unwrap()
}

fn record() -> Jq {
    Jq::compile(
        "filters/record.jq",
        &file("filters/record.jq"),
        &["element", "question"],
    )
    .unwrap()
}

/// The elements of a model.
fn elements(model: &Path) -> Vec<Value> {
    let mut out = Vec::new();
    extract(model, "model.ifc", &mut out).unwrap();
    let mut parsed: Value = serde_json::from_slice(&out).unwrap();
    match parsed["elements"].take() {
        Value::Array(elements) => elements,
        other => panic!("elements are {other}"),
    }
}
