//! Figures of a workbook file that follow from another sheet: sums and counts, written as formulas, and lists of choices.

use std::collections::BTreeMap;

use milepost_formats::xlsx::{ColumnRef, Condition, SumLayout};
use serde::Deserialize;

use super::declared::{Sheet, Workbook};

/// A sum or count of the rows of another sheet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Header of the column to sum. Default: the rows are counted.
    #[serde(default)]
    pub(crate) sum: Option<String>,
    /// The sheet whose rows are summed or counted.
    pub(crate) of: String,
    /// Values that the cells of its columns must equal: header of a column of this row, or `{text = "…"}`.
    #[serde(default, rename = "where")]
    pub(crate) conditions: BTreeMap<String, Equals>,
}

/// The value that a cell must equal.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected the header of a column of this sheet, or `{text = \"…\"}`"
)]
pub(crate) enum Equals {
    /// The cell of this column in the same row.
    Column(String),
    /// A text.
    Text {
        /// The text.
        text: String,
    },
}

/// The formula of a column: the same for each row, or by a name of `[formulas]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected `{sum, of, where}`, or jq of the row that returns a name of `[formulas]`"
)]
pub(crate) enum ColumnFigure {
    /// For each row.
    Each(Figure),
    /// jq of the row that returns a name of `[formulas]`, or null.
    Named(String),
}

/// The column of another sheet whose cells are offered as a drop-down list.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Choices {
    /// The name of the sheet.
    pub(crate) sheet: String,
    /// Header of its column.
    pub(crate) column: String,
}

impl Choices {
    pub(crate) fn layout(&self) -> ColumnRef {
        ColumnRef {
            sheet: self.sheet.clone(),
            header: self.column.clone(),
        }
    }
}

impl Figure {
    pub(crate) fn layout(&self) -> SumLayout {
        let conditions = self.conditions.iter().map(|(header, equals)| {
            let equals = match equals {
                Equals::Column(own) => Condition::Column(own.clone()),
                Equals::Text { text } => Condition::Text(text.clone()),
            };
            (header.clone(), equals)
        });
        SumLayout {
            sum: self.sum.clone(),
            of: self.of.clone(),
            conditions: conditions.collect(),
        }
    }

    /// Checks that the sheet and the columns exist. `own` are the headers of the sheet with the figure.
    fn check(&self, workbook: &Workbook, own: &[&str]) -> Result<(), String> {
        let headers = readable(workbook, &self.of)?;
        for header in self.sum.iter().chain(self.conditions.keys()) {
            has(&headers, header, &self.of)?;
        }
        for equals in self.conditions.values() {
            if let Equals::Column(header) = equals
                && !own.contains(&header.as_str())
            {
                return Err(format!(
                    "its formula refers to the missing column `{header}`"
                ));
            }
        }
        Ok(())
    }
}

impl Sheet {
    /// Returns true if the sheet reads from another, which must be written before.
    pub(crate) fn reads_another(&self) -> bool {
        let columns = self.columns.iter().flatten();
        columns
            .into_iter()
            .any(|column| column.options.formula.is_some() || column.options.choices.is_some())
    }
}

/// Checks the formulas and choices of a sheet.
pub(crate) fn check(workbook: &Workbook, sheet: &Sheet) -> Result<(), String> {
    let columns = sheet.columns.as_deref().unwrap_or_default();
    let own: Vec<&str> = columns.iter().map(|c| c.header.as_str()).collect();
    for column in columns {
        match &column.options.formula {
            Some(ColumnFigure::Each(figure)) => figure.check(workbook, &own)?,
            Some(ColumnFigure::Named(_)) => {
                for figure in workbook.formulas.values() {
                    figure.check(workbook, &own)?;
                }
            }
            None => {}
        }
        if let Some(choices) = &column.options.choices {
            let headers = readable(workbook, &choices.sheet)?;
            has(&headers, &choices.column, &choices.sheet)?;
        }
    }
    Ok(())
}

/// Returns the headers of a sheet that others may read.
fn readable<'w>(workbook: &'w Workbook, name: &str) -> Result<Vec<&'w str>, String> {
    let found = workbook.sheets.iter().find(|sheet| sheet.name == name);
    let found =
        found.ok_or_else(|| format!("it reads the sheet `{name}`, which is not declared"))?;
    if found.reads_another() {
        return Err(format!(
            "it reads the sheet `{name}`, which itself reads another sheet; refer to that sheet directly"
        ));
    }
    let columns = found.columns.iter().flatten();
    Ok(columns.map(|column| column.header.as_str()).collect())
}

fn has(headers: &[&str], header: &str, sheet: &str) -> Result<(), String> {
    if headers.contains(&header) {
        return Ok(());
    }
    Err(format!(
        "the sheet `{sheet}` has no column `{header}`; its columns are {}",
        headers.join(", ")
    ))
}
