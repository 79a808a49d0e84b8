//! Takes the corrections that a person typed into a workbook into an input of the workspace.

mod cells;

pub use crate::ops::change::corrections::Correction;

use crate::ops::change::corrections::{Destination, Origin, save};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::run::{ReviewSheet, read_review, review_sheets};
use cells::{Defaults, corrections};
use milepost_core::model::stage::PathTemplate;
use milepost_core::plan::paths;
use milepost_formats::xlsx::{SheetColumns, XlsxReadError};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The workbook to import, and what its rows may leave out.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The workbook, as an absolute path.
    pub file: PathBuf,
    /// The person of rows that name none; by default the user of this process.
    pub who: Option<String>,
    /// The reason for rows without one.
    pub why: Option<String>,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Imported {
    /// The workbook.
    pub file: String,
    /// The sheet that was read.
    pub sheet: String,
    /// The table of corrections.
    pub into: String,
    /// The corrections that were added to the table.
    pub added: Vec<Correction>,
    /// The corrections that the table had already.
    pub known: Vec<Correction>,
    /// The stage that wrote the workbook, if it is an output of the workspace: it was modified by hand.
    pub output_of: Option<String>,
}

/// Adds the corrections of a workbook to the table of corrections. All cells are checked first; if one is refused, nothing is added.
/// No row of the table is changed or removed, and a row that it has already is not added again.
///
/// # Errors
/// When the project declares no review sheet, the workbook cannot be read, a cell is refused, another process has locked the
/// workspace, or the disk fails.
pub fn import_review(request: &Request, options: &ImportOptions) -> Result<Imported, OpsError> {
    let mut opened = open(request)?;
    let shown = options.file.display().to_string();
    let pipeline = opened.pipeline.clone();
    let sheets = review_sheets(&pipeline).map_err(|error| OpsError::World(error.to_string()))?;
    let (sheet, columns) = read(&sheets, &options.file, &shown)?;
    let scope = Value::Object(opened.settings.scope(&pipeline));
    let destination = Destination::of(&opened, sheet, &scope)?;
    let who = request.person(options.who.as_deref());
    let defaults = Defaults {
        who: &who,
        why: options.why.as_deref(),
    };
    let name = options.file.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let (added, known) = save(
        &mut opened,
        &request.command,
        &destination,
        &Origin::Workbook(&name),
        |targets| corrections(sheet, &columns, &destination.labels, targets, &defaults),
    )?;
    let file = std::fs::canonicalize(&options.file).unwrap_or_else(|_| options.file.clone());
    Ok(Imported {
        output_of: written_by(&opened, &file, &scope),
        file: shown,
        sheet: sheet.name.clone(),
        into: destination.path.to_string(),
        added,
        known,
    })
}

/// Reads the first declared sheet that the workbook has.
fn read<'a>(
    sheets: &'a [ReviewSheet<'a>],
    file: &Path,
    shown: &str,
) -> Result<(&'a ReviewSheet<'a>, SheetColumns), OpsError> {
    let mut missing = None;
    for sheet in sheets {
        let outcome = read_review(file, shown, sheet);
        match outcome.map_err(|outcome| OpsError::World(outcome.message))? {
            Ok(columns) => return Ok((sheet, columns)),
            Err(error @ XlsxReadError::NoSheet { .. }) => missing = missing.or(Some(error)),
            Err(error @ XlsxReadError::NoWorkbook(_)) => {
                let message = format!("{shown}: {error}; save it as .xlsx");
                return Err(OpsError::World(message));
            }
            Err(error) => return Err(OpsError::World(format!("{shown}: {error}"))),
        }
    }
    Err(match missing {
        Some(error) => OpsError::World(format!("{shown}: {error}")),
        None => OpsError::Usage(
            "no workbook of this project has a sheet to fill in: declare `[sheet.review]` in a workbook file".to_owned(),
        ),
    })
}

/// Returns the stage that wrote a file, if it is an output.
fn written_by(opened: &OpenProject, file: &Path, scope: &Value) -> Option<String> {
    let is_it = |template: &PathTemplate| {
        let path = paths::render(template, scope).ok();
        let path = path.and_then(|path| opened.files.resolve(&path).ok());
        path.is_some_and(|path| std::fs::canonicalize(path).is_ok_and(|path| path == file))
    };
    let stages = &opened.pipeline.stages;
    let found = stages
        .iter()
        .find(|stage| stage.outputs.iter().any(|output| is_it(&output.path)));
    found.map(|stage| stage.name.clone())
}
