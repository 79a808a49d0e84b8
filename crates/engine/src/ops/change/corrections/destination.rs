//! Where the corrections of a review sheet go: the input that takes them, and the values that its fields may have.

use super::Labels;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::run::ReviewSheet;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope::{Format, parse};
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::stage::{Input, InputSource, PathTemplate, Stage};
use milepost_core::model::step::StepKind;
use milepost_core::plan::paths;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where the corrections of a review sheet go.
pub(crate) struct Destination<'a> {
    pub(crate) sheet: &'a ReviewSheet<'a>,
    /// The input that takes the corrections, and its path.
    pub(super) input: &'a Input,
    pub(crate) path: FilePath,
    /// The labels of fields, by the headers of their columns.
    pub(crate) labels: BTreeMap<String, Labels>,
    /// The shared key of the step that applies the corrections.
    pub(crate) shared_key: Option<String>,
}

impl<'a> Destination<'a> {
    /// Finds the input and the labels. `scope` contains the values of the project.
    ///
    /// # Errors
    /// When the input is not a CSV file or an output, or labels cannot be read.
    pub(crate) fn of(
        opened: &OpenProject,
        sheet: &'a ReviewSheet<'a>,
        scope: &Value,
    ) -> Result<Self, OpsError> {
        let (input, path) = table_of(sheet, scope)?;
        if let Some(stage) = output_of(opened, &path, scope) {
            return Err(OpsError::Usage(format!(
                "`{path}` is an output of the stage `{stage}`: corrections must be in a file that no stage writes"
            )));
        }
        let mut labels = BTreeMap::new();
        for (header, field) in &sheet.review.fields {
            if let Some(path) = field.labels() {
                labels.insert(header.clone(), labels_at(opened, sheet, path, scope)?);
            }
        }
        Ok(Self {
            shared_key: shared_key(sheet.stage, &sheet.review.into),
            sheet,
            input,
            path,
            labels,
        })
    }
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
    let (input, template) = template
        .ok_or_else(|| wrong(format!("`{}` is not an input of the stage", select.first())))?;
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
            PathStep::Each => return Err(wrong("expected a path without `[]`".to_owned())),
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
