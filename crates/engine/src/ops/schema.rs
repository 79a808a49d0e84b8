//! The published schemas: of declarations, of the files that steps read, and of what Milepost writes and prints.
//!
//! Debug builds generate them from the types. Release builds embed the committed files, which a test compares with the types.

#[cfg(debug_assertions)]
mod generate;

use crate::ops::project::error::OpsError;
#[cfg(debug_assertions)]
pub use generate::{read, written};
use milepost_store::store::disk::{Disk, DiskError};
use milepost_store::store::read;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The folder of the published schemas, in Milepost's repository.
pub const FOLDER: &str = "schemas/milepost";

macro_rules! published {
    ($($name:literal)*) => {
        /// The names of the schemas, sorted.
        pub const NAMES: &[&str] = &[$($name),*];

        #[cfg(not(debug_assertions))]
        const TEXTS: &[&str] = &[$(include_str!(concat!(
            "../../../../schemas/milepost/",
            $name,
            ".schema.json"
        ))),*];
    };
}

published! {
    "accept" "approve" "checkpoint" "clean" "diff" "error" "gc" "graph" "init" "log" "manifest" "params"
    "plan" "prices" "progress" "project" "record" "request" "rules" "run" "stage" "status"
    "trace" "verify" "why" "workbook" "workspace"
}

/// Returns all schemas by name, as JSON Schema 2020-12.
pub fn schemas() -> BTreeMap<&'static str, Value> {
    #[cfg(debug_assertions)]
    return generate::schemas();
    #[cfg(not(debug_assertions))]
    return NAMES
        .iter()
        .zip(TEXTS)
        .map(|(name, text)| (*name, serde_json::from_str(text).unwrap_or_default()))
        .collect();
}

/// Returns a schema.
///
/// # Errors
/// When there is no schema of this name.
pub fn schema(name: &str) -> Result<Value, OpsError> {
    let mut all = schemas();
    let message = format!(
        "there is no schema `{name}`; available: {}",
        NAMES.join(", ")
    );
    let plain = name.strip_suffix(".schema.json").unwrap_or(name);
    all.remove(plain).ok_or(OpsError::Usage(message))
}

/// Returns a schema as text.
pub fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// Writes all schemas to a folder, each as `NAME.schema.json`. Returns the names of new or changed files.
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
        if read::text(&path).is_ok_and(|there| there == text) {
            continue;
        }
        disk.write_atomic(&path, text.as_bytes())?;
        written.push(name);
    }
    Ok(written)
}
