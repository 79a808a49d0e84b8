//! The columns of a sheet that a person fills in: what a workbook file declares of them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::declared::Sheet;

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
                "its review names the column `{header}`, which it does not have"
            )),
            None => Ok(()),
        }
    }
}
