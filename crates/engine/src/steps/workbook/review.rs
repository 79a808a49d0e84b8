//! The columns of a sheet that a person fills in: what a workbook file declares of them, and reading them back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use milepost_core::model::outcome::Outcome;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::{PROGRAM_TIMEOUT, StepKind};
use milepost_formats::xlsx::{SheetColumns, XlsxReadError};
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
#[serde(untagged, expecting = "expected a field, or `{ field, labels }`")]
pub(crate) enum ReviewField {
    /// Its name; dots lead into objects.
    Name(String),
    /// Its name, and where the labels of its values are.
    Labelled(LabelledField),
}

/// A field whose values have labels.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelledField {
    /// Its name.
    field: String,
    /// Plain path over the inputs of the stage to an object that has, for each value, a label or an object of labels. A cell may
    /// contain a label or the value itself.
    labels: String,
}

impl ReviewField {
    /// Returns the name of the field.
    pub(crate) fn field(&self) -> &str {
        match self {
            Self::Name(field) => field,
            Self::Labelled(labelled) => &labelled.field,
        }
    }

    /// Returns the path of the labels.
    pub(crate) fn labels(&self) -> Option<&str> {
        match self {
            Self::Name(_) => None,
            Self::Labelled(labelled) => Some(&labelled.labels),
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
        match self.headers().iter().find(|header| !has(header)) {
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
    /// The name of the sheet.
    pub(crate) name: String,
    /// Its columns.
    pub(crate) review: Review,
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
            for sheet in Workbook::parse(file, &step.workbook.text)?.sheets {
                if let Some(review) = sheet.review {
                    let name = sheet.name;
                    found.push(ReviewSheet {
                        stage,
                        file,
                        name,
                        review,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// Reads the columns of a sheet from a workbook that a person edited, in a worker. `name` is what people know the file by.
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
