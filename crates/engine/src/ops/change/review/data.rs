//! The items of a review, as callers see them.

use serde::Serialize;

/// Which items to return.
#[derive(Debug, Clone, Default)]
pub struct ReviewOptions {
    /// The review sheet; by default the first that the project declares.
    pub sheet: Option<String>,
    /// How many items to leave out.
    pub offset: u64,
    /// How many items to return at most.
    pub limit: u64,
    /// Counts and returns only the items without a correction.
    pub open_only: bool,
    /// Returns this item, on any page.
    pub item: Option<ItemName>,
}

/// The subject of an item of a review sheet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemName {
    /// The record with this key.
    Key(String),
    /// All records with this shared key.
    SharedKey(String),
}

/// The items of a review sheet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewList {
    /// The review sheets of the project.
    pub sheets: Vec<String>,
    /// The sheet that was read.
    pub sheet: String,
    /// The stage that writes it.
    pub stage: String,
    /// The table of corrections.
    pub into: String,
    /// False if the stage has not run, so that there are no items yet.
    pub has_run: bool,
    /// The number of items.
    pub total: u64,
    /// How many of them have no correction.
    pub open: u64,
    /// The selected items.
    pub items: Vec<ReviewItem>,
    /// Corrections that the stage has not read yet; `None` if there are some and their number is unknown.
    pub unapplied: Option<u64>,
}

/// An item of a review sheet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewItem {
    /// How many items that count come before it.
    pub place: u64,
    /// The records that it is about.
    pub name: ItemName,
    /// The header of the column that names them.
    pub named_by: String,
    /// The columns that a person reads, without empty ones.
    pub columns: Vec<ReviewColumn>,
    /// The fields that a correction may change.
    pub fields: Vec<ReviewField>,
}

/// A column of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewColumn {
    /// The header of the column.
    pub header: String,
    /// The text of the cell.
    pub text: String,
}

/// A field of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewField {
    /// The header of the column to fill in.
    pub header: String,
    /// The name of the field.
    pub field: String,
    /// The present value; `None` if there is none, or if it is not known.
    pub now: Option<LabelledValue>,
    /// True if the sheet tells the present value: a column of its own, or the field of the row.
    pub is_known: bool,
    /// The values that have labels. Those that the columns mention come first, then those that people chose most often.
    pub choices: Vec<LabelledValue>,
    /// The correction in the table.
    pub correction: Option<ExistingCorrection>,
}

/// A value with its label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabelledValue {
    /// The value.
    pub value: String,
    /// The label; the value if it has none.
    pub label: String,
}

/// A correction that the table has already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExistingCorrection {
    /// The line of the table.
    pub line: u64,
    /// The new value.
    pub value: String,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: String,
}
