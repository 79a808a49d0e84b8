//! Takes the corrections that a person typed into a workbook into an input of the workspace.

mod cells;
mod table;

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::run::record::recorder::{Recorder, counted};
use crate::run::record::recover;
use crate::run::{ReviewSheet, read_review, review_sheets};
use cells::{Labels, Targets, corrections};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope::{Format, parse};
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::stage::{Input, InputSource, PathTemplate, Stage};
use milepost_core::model::step::StepKind;
use milepost_core::plan::paths;
use milepost_formats::xlsx::{SheetColumns, XlsxReadError};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::Table;

/// The workbook to import, and what its rows may leave out.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The workbook, as an absolute path.
    pub file: PathBuf,
    /// The person of rows that name none; by default the user of this process.
    pub who: Option<String>,
    /// The reason of rows that give none.
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

/// A correction in a workbook.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Correction {
    /// The cell with the value, such as `Review!M12`.
    pub cell: String,
    /// The cell that names the record or records.
    #[serde(skip)]
    pub(crate) target_cell: String,
    /// The column of the table that names the record or records.
    pub column: String,
    /// Its value.
    pub target: String,
    /// The field that is corrected.
    pub field: String,
    /// The new value.
    pub value: String,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cell,
            column,
            target,
            field,
            value,
            who,
            why,
            ..
        } = self;
        write!(
            f,
            "{cell}: {field} of {column} {target} is `{value}` ({who}: {why})"
        )
    }
}

/// The most corrections that the journal lists; the table has all.
const RECORDED: usize = 100;

/// What rows take that do not say it.
struct Defaults<'a> {
    who: &'a str,
    why: Option<&'a str>,
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
    let (input, path) = table_of(sheet, &scope)?;
    if let Some(stage) = output_of(&opened, &path, &scope) {
        return Err(OpsError::Usage(format!(
            "`{path}` is an output of the stage `{stage}`: corrections must be in a file that no stage writes"
        )));
    }
    let mut labels = BTreeMap::new();
    for (header, field) in &sheet.review.fields {
        if let Some(path) = field.labels() {
            labels.insert(header.clone(), labels_at(&opened, sheet, path, &scope)?);
        }
    }
    let who = request.person(options.who.as_deref());
    let defaults = Defaults {
        who: &who,
        why: options.why.as_deref(),
    };
    let locked = lock_and_read(&mut opened, &request.command)?;
    let table = Table::read(&opened, input, path)?;
    let targets = Targets {
        key: table.key()?,
        shared_key: shared_key(sheet.stage, &sheet.review.into),
    };
    let (found, mut problems) = corrections(sheet, &columns, &labels, &targets, &defaults);
    let (added, known) = table.sort(found, &mut problems);
    table.check(&added, &mut problems)?;
    if !problems.is_empty() {
        return Err(OpsError::NotImported(problems));
    }
    if !added.is_empty() {
        let mut recorder = Recorder::new(
            opened.context(),
            locked.state,
            locked.journal,
            &request.command,
        );
        recover::recover(&mut recorder, Duration::from_secs(5))?;
        let to = table.add(&opened, &added)?;
        let name = options.file.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        record(&mut recorder, &name, &sheet.name, &table, to, &added)?;
    }
    drop(locked.lock);
    let file = std::fs::canonicalize(&options.file).unwrap_or_else(|_| options.file.clone());
    Ok(Imported {
        output_of: written_by(&opened, &file, &scope),
        file: shown,
        sheet: sheet.name.clone(),
        into: table.path.to_string(),
        added,
        known,
    })
}

/// Records the corrections that were added.
fn record(
    recorder: &mut Recorder<'_>,
    file: &str,
    sheet: &str,
    table: &Table<'_>,
    to: Digest,
    added: &[Correction],
) -> Result<(), OpsError> {
    let into = table.path.to_string();
    let count = counted(added.len() as u64, "correction", "corrections");
    let summary = format!("imported {count} from {file}, sheet {sheet}, into {into}");
    let event = Event::CorrectionsImported {
        file: file.to_owned(),
        into: into.clone(),
        from: table.digest(),
        to,
        added: added.len() as u64,
        corrections: added
            .iter()
            .take(RECORDED)
            .map(ToString::to_string)
            .collect(),
    };
    recorder.record(EventType::Review, "milepost", event, summary, vec![into])?;
    recorder.end_without_stages("imported", "imported")?;
    Ok(recorder.flush()?)
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

/// Returns the input that takes the corrections of a sheet, and its path.
fn table_of<'a>(sheet: &ReviewSheet<'a>, scope: &Value) -> Result<(&'a Input, FilePath), OpsError> {
    let (name, file, stage) = (&sheet.review.into, sheet.file, &sheet.stage.name);
    let wrong = |what: &str| {
        let sheet = &sheet.name;
        OpsError::Usage(format!(
            "{file}: sheet {sheet:?}: expected `into` to name a CSV input of the stage `{stage}`; `{name}` {what}"
        ))
    };
    let input = sheet.stage.inputs.iter().find(|input| input.name == *name);
    let input = input.ok_or_else(|| wrong("is not an input"))?;
    let template = path_of(input).ok_or_else(|| wrong("is a list of files"))?;
    let path = paths::render(template, scope)
        .map_err(|error| wrong(&format!("has no valid path: {error}")))?;
    if input.reading(&path).format != Format::Csv {
        return Err(wrong("is not a CSV file"));
    }
    Ok((input, path))
}

/// Returns the path of an input that is one file.
fn path_of(input: &Input) -> Option<&PathTemplate> {
    match &input.source {
        InputSource::Path(path) if !path.is_pattern() => Some(path),
        _ => None,
    }
}

/// Returns the labels that an input holds.
fn labels_at(
    opened: &OpenProject,
    sheet: &ReviewSheet<'_>,
    declared: &str,
    scope: &Value,
) -> Result<Labels, OpsError> {
    let wrong = |what: String| {
        let (file, name) = (sheet.file, &sheet.name);
        OpsError::Usage(format!(
            "{file}: sheet {name:?}: `labels = \"{declared}\"`: {what}"
        ))
    };
    let select = Select::parse(declared).map_err(|error| wrong(error.to_string()))?;
    let inputs = &sheet.stage.inputs;
    let input = inputs.iter().find(|input| input.name == select.first());
    let template = input.and_then(|input| Some((input, path_of(input)?)));
    let (input, template) =
        template.ok_or_else(|| wrong(format!("`{}` is no input of the stage", select.first())))?;
    let path = paths::render(template, scope).map_err(|error| wrong(error.to_string()))?;
    let source = opened
        .files
        .source(&path)
        .map_err(OpsError::unreadable(&path))?;
    let content = parse(&path.to_string(), &*source, &input.reading(&path));
    let mut value = &content.map_err(OpsError::unreadable(&path))?;
    for step in select.rest().steps() {
        value = match step {
            PathStep::Field(name) => &value[name.as_str()],
            PathStep::Each => return Err(wrong("a path without `[]` was expected".to_owned())),
        };
    }
    match value {
        Value::Object(_) => Ok(Labels::of(value)),
        _ => Err(wrong(format!("there is no table in {path}"))),
    }
}

/// Returns the shared key of the step that applies the corrections.
fn shared_key(stage: &Stage, into: &str) -> Option<String> {
    stage.steps.iter().find_map(|step| match &step.kind {
        StepKind::Merge(merge) if merge.corrections.as_deref() == Some(into) => {
            merge.shared_key.clone()
        }
        _ => None,
    })
}

/// Returns the stage with an output at this path.
fn output_of(opened: &OpenProject, path: &FilePath, scope: &Value) -> Option<String> {
    let is_it =
        |template: &PathTemplate| paths::render(template, scope).is_ok_and(|found| found == *path);
    let stages = &opened.pipeline.stages;
    let found = stages
        .iter()
        .find(|stage| stage.outputs.iter().any(|output| is_it(&output.path)));
    found.map(|stage| stage.name.clone())
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
