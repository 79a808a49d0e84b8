//! Where a file violates the schema that is declared for it.

use super::access::matches;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::expr::scope::Format;
use milepost_core::model::stage::Output;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::layout::OWN;
use milepost_store::store::read;
use serde::Serialize;
use std::path::Path;

/// The most violations that are listed.
const LISTED: usize = 100;

/// The largest file that is validated to be shown, in bytes.
const LARGEST: u64 = 16 << 20;

/// The result of the validation of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileCheck {
    /// The path of the schema in the project.
    pub schema: String,
    /// The first violations.
    pub violations: Vec<FileViolation>,
    /// Why the file was not validated.
    pub problem: Option<String>,
}

/// A value that violates its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileViolation {
    /// The JSON pointer of the value; empty for the document.
    pub pointer: String,
    /// The expectation and the value found.
    pub message: String,
}

/// Returns the declared output that a file is, also of a file that was moved to quarantine.
pub(super) fn declared<'a>(opened: &'a OpenProject, file: &FilePath) -> Option<&'a Output> {
    if file.root != Root::Workspace {
        return None;
    }
    let mut parts = file.path.as_str().splitn(4, '/');
    let set_aside = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(OWN), Some("quarantine"), Some(_), Some(rest)) => RelPath::parse(rest).ok(),
        _ => None,
    };
    let path = set_aside.as_ref().unwrap_or(&file.path);
    let mut outputs = opened
        .pipeline
        .stages
        .iter()
        .flat_map(|stage| &stage.outputs);
    outputs.find(|output| matches(&output.path.pattern(), path))
}

/// Validates a JSON file of a declared output; `None` if it has no schema.
pub(super) fn check(output: &Output, place: &Path, size: u64) -> Option<FileCheck> {
    let asset = output.schema.as_ref()?;
    if output.format != Format::Json {
        return None;
    }
    let checked = |violations, problem| FileCheck {
        schema: asset.path.to_string(),
        violations,
        problem,
    };
    if size > LARGEST {
        let problem = "the file is larger than 16 MiB";
        return Some(checked(Vec::new(), Some(problem.to_owned())));
    }
    let schemas = Schemas::default();
    let schema = match schemas.get(asset) {
        Ok(schema) => schema,
        Err(error) => return Some(checked(Vec::new(), Some(error.to_string()))),
    };
    let open = match read::open(place) {
        Ok(open) => open,
        Err(error) => return Some(checked(Vec::new(), Some(error.to_string()))),
    };
    Some(
        match schema.validate_stream(open, output.stream.as_ref(), LISTED) {
            Ok(found) => {
                let violations = found.violations.into_iter();
                let violations = violations.map(|violation| FileViolation {
                    pointer: violation.pointer,
                    message: violation.message,
                });
                checked(violations.collect(), None)
            }
            Err(error) => checked(Vec::new(), Some(error.to_string())),
        },
    )
}
