//! The published schemas: of declarations, of the files that steps read, and of what Milepost writes and prints.

use crate::ops::change::accept::Accepted;
use crate::ops::change::clean::Cleaned;
use crate::ops::change::gc::Collected;
use crate::ops::change::params::Params;
use crate::ops::change::templates::Initiated;
use crate::ops::inspect::diff::Diff;
use crate::ops::inspect::graph::Graph;
use crate::ops::inspect::log::Log;
use crate::ops::inspect::show_request::WouldSend;
use crate::ops::inspect::status::Status;
use crate::ops::inspect::verify::Verified;
use crate::ops::plan::Plan;
use crate::ops::project::error::OpsError;
use crate::ops::run::ended::{Ended, Refused};
use crate::ops::run::workspaces::Batch;
use crate::ops::why::Why;
use crate::run::forms;
use milepost_core::decl::{project_schema, stage_schema};
use milepost_core::model::checkpoint::{Checkpoint, Progress};
use milepost_core::model::event::Record;
use milepost_store::store::disk::{Disk, DiskError};
use milepost_store::store::workspace::Identity;
use schemars::JsonSchema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Where the schemas are published, in Milepost's own repository.
pub const FOLDER: &str = "schemas/milepost";

/// All schemas by name: JSON Schema 2020-12.
pub fn schemas() -> BTreeMap<&'static str, Value> {
    let mut all: BTreeMap<&'static str, Value> = forms().into_iter().collect();
    all.insert("project", project_schema());
    all.insert("stage", stage_schema());
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
            of::<WouldSend>("request"),
        ),
        ("params", "milepost params --json", of::<Params>("params")),
        ("status", "milepost status --json", of::<Status>("status")),
        ("why", "milepost why --json", of::<Why>("why")),
        ("log", "milepost log --json", of::<Log>("log")),
        ("verify", "milepost verify --json", of::<Verified>("verify")),
        ("accept", "milepost accept --json", of::<Accepted>("accept")),
        ("diff", "milepost diff --json", of::<Diff>("diff")),
        ("graph", "milepost graph --json", of::<Graph>("graph")),
        ("clean", "milepost clean --json", of::<Cleaned>("clean")),
        ("gc", "milepost gc --json", of::<Collected>("gc")),
        ("run", "milepost run --json", of::<Ended>("run")),
        (
            "manifest",
            "milepost run --manifest --json",
            of::<Batch>("manifest"),
        ),
        ("init", "milepost init --json", of::<Initiated>("init")),
        (
            "error",
            "What any command prints with --json when it cannot be done",
            of::<Refused>("error"),
        ),
    ] {
        let mut schema = schema;
        schema["title"] = about.into();
        all.insert(name, schema);
    }
    all
}

/// One schema.
///
/// # Errors
/// When there is none of this name.
pub fn schema(name: &str) -> Result<Value, OpsError> {
    let mut all = schemas();
    let known: Vec<&str> = all.keys().copied().collect();
    let message = format!(
        "there is no schema `{name}`: there are {}",
        known.join(", ")
    );
    let plain = name.strip_suffix(".schema.json").unwrap_or(name);
    all.remove(plain).ok_or(OpsError::Usage(message))
}

/// A schema as it is published.
pub fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// Writes all schemas into a folder, each as `NAME.schema.json`; the names of those that were not there as they are.
///
/// # Errors
/// When the disk fails.
pub fn write(disk: &Disk, folder: &Path) -> Result<Vec<String>, DiskError> {
    disk.create_dir_all(folder)?;
    let mut written = Vec::new();
    for (name, schema) in schemas() {
        let name = format!("{name}.schema.json");
        let path = folder.join(&name);
        let text = text(&schema);
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        disk.write_atomic(&path, text.as_bytes())?;
        written.push(name);
    }
    Ok(written)
}

fn of<T: JsonSchema>(name: &str) -> Value {
    let mut schema = written::<T>();
    schema["$id"] = format!("{name}.schema.json").into();
    schema
}

/// The schema of data that is written: a field that is always there is required, one that is left out when empty is not.
pub fn written<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    generated::<T>(settings)
}

/// The schema of data that is read: a field with a default is not required.
pub fn read<T: JsonSchema>() -> Value {
    generated::<T>(schemars::generate::SchemaSettings::draft2020_12().for_deserialize())
}

fn generated<T: JsonSchema>(settings: schemars::generate::SchemaSettings) -> Value {
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    schema
}

/// Without the formats of Rust's numbers, which JSON Schema does not know.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
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
