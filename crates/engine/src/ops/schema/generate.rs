//! Generates the schemas from the types, in debug builds only.

use crate::ops::change::accept::Accepted;
use crate::ops::change::approve::Approved;
use crate::ops::change::clean::Cleaned;
use crate::ops::change::gc::Collected;
use crate::ops::change::params::Params;
use crate::ops::change::templates::Initiated;
use crate::ops::inspect::diff::Diff;
use crate::ops::inspect::graph::Graph;
use crate::ops::inspect::log::Log;
use crate::ops::inspect::show_request::FirstRequest;
use crate::ops::inspect::status::Status;
use crate::ops::inspect::verify::Verified;
use crate::ops::plan::Plan;
use crate::ops::run::result::{CommandError, RunResult};
use crate::ops::run::workspaces::WorkspacesResult;
use crate::ops::trace::Trace;
use crate::ops::why::Why;
use crate::run::workbook_schema;
use milepost_agents::prices::prices_schema;
use milepost_agents::rules::rules_schema;
use milepost_core::decl::{project_schema, stage_schema};
use milepost_core::model::checkpoint::{Checkpoint, Progress};
use milepost_core::model::event::Record;
use milepost_store::store::workspace::Identity;
use schemars::JsonSchema;
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns all schemas by name.
pub(super) fn schemas() -> BTreeMap<&'static str, Value> {
    let mut all = BTreeMap::from([
        ("prices", prices_schema()),
        ("project", project_schema()),
        ("rules", rules_schema()),
        ("stage", stage_schema()),
        ("workbook", workbook_schema()),
    ]);
    for (name, about, schema) in [
        (
            "checkpoint",
            "stage_N_complete.json",
            of::<Checkpoint>("checkpoint"),
        ),
        (
            "progress",
            "The progress file of a stage",
            of::<Progress>("progress"),
        ),
        (
            "record",
            "A line of the journal, .milepost/journal/*.jsonl",
            of::<Record>("record"),
        ),
        (
            "workspace",
            ".milepost/workspace.json",
            of::<Identity>("workspace"),
        ),
        ("plan", "milepost plan --json", of::<Plan>("plan")),
        (
            "request",
            "milepost plan --show-request --json",
            of::<FirstRequest>("request"),
        ),
        ("params", "milepost params --json", of::<Params>("params")),
        ("status", "milepost status --json", of::<Status>("status")),
        ("why", "milepost why --json", of::<Why>("why")),
        ("trace", "milepost trace --json", of::<Trace>("trace")),
        ("log", "milepost log --json", of::<Log>("log")),
        ("verify", "milepost verify --json", of::<Verified>("verify")),
        ("accept", "milepost accept --json", of::<Accepted>("accept")),
        (
            "approve",
            "milepost approve --json",
            of::<Approved>("approve"),
        ),
        ("diff", "milepost diff --json", of::<Diff>("diff")),
        ("graph", "milepost graph --json", of::<Graph>("graph")),
        ("clean", "milepost clean --json", of::<Cleaned>("clean")),
        ("gc", "milepost gc --json", of::<Collected>("gc")),
        ("run", "milepost run --json", of::<RunResult>("run")),
        (
            "manifest",
            "milepost run --workspaces --json",
            of::<WorkspacesResult>("manifest"),
        ),
        ("init", "milepost init --json", of::<Initiated>("init")),
        (
            "error",
            "JSON printed on failure, by any command with --json",
            of::<CommandError>("error"),
        ),
    ] {
        let mut schema = schema;
        schema["title"] = about.into();
        all.insert(name, schema);
    }
    all
}

fn of<T: JsonSchema>(name: &str) -> Value {
    let mut schema = written::<T>();
    schema["$id"] = format!("{name}.schema.json").into();
    schema
}

/// Returns the schema of data that is written: fields that are always present are required.
pub fn written<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    generated::<T>(settings)
}

/// Returns the schema of data that is read: fields without a default are required.
pub fn read<T: JsonSchema>() -> Value {
    generated::<T>(schemars::generate::SchemaSettings::draft2020_12().for_deserialize())
}

fn generated<T: JsonSchema>(settings: schemars::generate::SchemaSettings) -> Value {
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    schema
}

/// Removes what only Rust knows: formats of its numbers, and `None` in descriptions.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace("`None`", "null");
            }
            let is_number = |format: &str| {
                matches!(format, "double" | "float")
                    || format.starts_with("uint")
                    || format.starts_with("int")
            };
            if object
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(is_number)
            {
                object.remove("format");
            }
            object.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        _ => {}
    }
}
