//! The columns of a sheet that a person fills in: what a workbook file declares of them, and reading them back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use milepost_core::model::outcome::Outcome;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::{PROGRAM_TIMEOUT, StepKind};
use milepost_formats::xlsx::{SheetColumns, SheetRow, XlsxReadError};
use serde::Deserialize;

use super::declared::{Sheet, Workbook, WorkbookError};
use crate::steps::cancel::CancelToken;
use crate::steps::worker::{Work, perform};

/// The columns of a sheet that a person fills in. `milepost import-review` adds them to an input as corrections.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Review {
    /// Header of the column with the key of a record. A row with a key corrects this record.
    #[serde(default)]
    pub(crate) key: Option<String>,
    /// Header of the column with the shared key. A row without a key corrects all records with this shared key.
    #[serde(default)]
    pub(crate) shared_key: Option<String>,
    /// The columns to fill in, and the field of the record that each corrects.
    pub(crate) fields: BTreeMap<String, ReviewField>,
    /// Header of the column with the name of the person.
    #[serde(default)]
    pub(crate) who: Option<String>,
    /// Header of the column with the reason.
    #[serde(default)]
    pub(crate) why: Option<String>,
    /// The input of the stage that takes the corrections: a CSV file.
    pub(crate) into: String,
}

/// A field that a column corrects.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a field, or `{ field, labels, now }`")]
pub(crate) enum ReviewField {
    /// Its name; dots lead into objects.
    Name(String),
    /// Its name, where the labels of its values are, and which column shows its value.
    Described(DescribedField),
}

/// A field whose values have labels, or whose value a column shows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribedField {
    /// Its name.
    field: String,
    /// Plain path over the inputs of the stage to an object that has, for each value, a label or an object of labels. A cell may
    /// contain a label or the value itself.
    #[serde(default)]
    labels: Option<String>,
    /// Header of the column that shows the value of the field, or its label; by default, the review page shows the field of the
    /// row.
    #[serde(default)]
    now: Option<String>,
}

impl ReviewField {
    /// Returns the name of the field.
    pub(crate) fn field(&self) -> &str {
        match self {
            Self::Name(field) => field,
            Self::Described(described) => &described.field,
        }
    }

    /// Returns the path of the labels.
    pub(crate) fn labels(&self) -> Option<&str> {
        match self {
            Self::Name(_) => None,
            Self::Described(described) => described.labels.as_deref(),
        }
    }

    /// Returns the header of the column that shows the value.
    pub(crate) fn now(&self) -> Option<&str> {
        match self {
            Self::Name(_) => None,
            Self::Described(described) => described.now.as_deref(),
        }
    }
}

impl Review {
    /// Returns the headers of its columns: those of [`Review::fields`] in their order, then key, shared key, person and reason.
    pub(crate) fn headers(&self) -> Vec<String> {
        let others = [&self.key, &self.shared_key, &self.who, &self.why];
        let fields = self.fields.keys().cloned();
        fields
            .chain(others.into_iter().flatten().cloned())
            .collect()
    }

    /// Checks that the sheet has the columns.
    pub(super) fn check(&self, sheet: &Sheet) -> Result<(), String> {
        if self.key.is_none() && self.shared_key.is_none() {
            return Err(
                "its review needs `key` or `shared_key`: the column that names the records"
                    .to_owned(),
            );
        }
        if self.fields.is_empty() {
            return Err("its review has no `fields`: the columns to fill in".to_owned());
        }
        let columns = sheet.columns.iter().flatten();
        let has = |header: &String| columns.clone().any(|column| column.header == *header);
        let now = self.fields.values().filter_map(ReviewField::now);
        let mut headers = self.headers();
        headers.extend(now.map(str::to_owned));
        match headers.iter().find(|header| !has(header)) {
            Some(header) => Err(format!(
                "its review refers to the missing column `{header}`"
            )),
            None => Ok(()),
        }
    }
}

/// A sheet with columns to fill in.
pub(crate) struct ReviewSheet<'a> {
    /// The stage that writes the workbook.
    pub(crate) stage: &'a Stage,
    /// The workbook file.
    pub(crate) file: &'a str,
    pub(crate) name: String,
    /// The columns to fill in.
    pub(crate) review: Review,
    pub(crate) workbook: Workbook,
}

impl ReviewSheet<'_> {
    /// Returns the sheet and the header of the column whose cells a column offers as choices.
    pub(crate) fn choices(&self, header: &str) -> Option<(&str, &str)> {
        let sheets = self.workbook.sheets.iter();
        let mut columns = sheets
            .filter(|sheet| sheet.name == self.name)
            .flat_map(|sheet| sheet.columns.iter().flatten());
        let column = columns.find(|column| column.header == header)?;
        let choices = column.options.choices.as_ref()?;
        Some((&choices.sheet, &choices.column))
    }

    /// Returns the headers of its columns that a person reads.
    pub(crate) fn shown(&self) -> Vec<&str> {
        let named = self.review.headers();
        let sheets = self.workbook.sheets.iter();
        let columns = sheets
            .filter(|sheet| sheet.name == self.name)
            .flat_map(|sheet| sheet.columns.iter().flatten());
        columns
            .map(|column| column.header.as_str())
            .filter(|header| !named.iter().any(|other| other == header))
            .collect()
    }
}

/// Returns the sheets with columns to fill in that a project declares.
///
/// # Errors
/// When a workbook file is wrong.
pub(crate) fn review_sheets(pipeline: &Pipeline) -> Result<Vec<ReviewSheet<'_>>, WorkbookError> {
    let mut found = Vec::new();
    for stage in &pipeline.stages {
        for step in &stage.steps {
            let StepKind::Xlsx(step) = &step.kind else {
                continue;
            };
            let file = step.workbook.path.as_str();
            let workbook = Workbook::parse(file, &step.workbook.text)?;
            for sheet in &workbook.sheets {
                if let Some(review) = &sheet.review {
                    found.push(ReviewSheet {
                        stage,
                        file,
                        name: sheet.name.clone(),
                        review: review.clone(),
                        workbook: workbook.clone(),
                    });
                }
            }
        }
    }
    Ok(found)
}

/// Reads a row of a workbook in a worker. `name` is the name of the file in messages.
///
/// # Errors
/// The errors of [`read_review`].
pub(crate) fn read_workbook_row(
    path: &Path,
    name: &str,
    sheet: &str,
    row: u32,
) -> Result<Result<SheetRow, XlsxReadError>, Outcome> {
    let work = Work::XlsxRow {
        path: path.as_os_str().to_owned(),
        name: name.to_owned(),
        sheet: sheet.to_owned(),
        row,
    };
    let cancel = Arc::new(CancelToken::default()).or_within(PROGRAM_TIMEOUT);
    perform(work, None, &cancel, "", &mut std::io::sink())
}

/// A column of a sheet as a workbook file declares it.
pub(crate) struct DeclaredColumn {
    pub(crate) header: String,
    /// The jq program of a cell.
    pub(crate) program: String,
}

/// Returns the columns of a sheet that the workbook of a stage declares; empty if none has such a sheet.
pub(crate) fn declared_columns(stage: &Stage, sheet: &str) -> Vec<DeclaredColumn> {
    let workbooks = stage.steps.iter().filter_map(|step| match &step.kind {
        StepKind::Xlsx(step) => {
            Workbook::parse(step.workbook.path.as_str(), &step.workbook.text).ok()
        }
        _ => None,
    });
    let sheets = workbooks.flat_map(|workbook| workbook.sheets);
    let columns = sheets
        .filter(|it| it.name == sheet)
        .filter_map(|it| it.columns);
    let columns = columns.flatten().map(|column| DeclaredColumn {
        header: column.header,
        program: column.cell,
    });
    columns.collect()
}

/// Reads the columns of a sheet from a workbook that a person edited, in a worker. `name` is the name of the file in messages.
///
/// # Errors
/// When the file cannot be read, or a limit ends the worker. The inner error says what is wrong with the workbook.
pub(crate) fn read_review(
    path: &Path,
    name: &str,
    sheet: &ReviewSheet<'_>,
) -> Result<Result<SheetColumns, XlsxReadError>, Outcome> {
    let work = Work::Xlsx {
        path: path.as_os_str().to_owned(),
        name: name.to_owned(),
        sheet: sheet.name.clone(),
        headers: sheet.review.headers(),
    };
    let cancel = Arc::new(CancelToken::default()).or_within(PROGRAM_TIMEOUT);
    perform(work, None, &cancel, "", &mut std::io::sink())
}
