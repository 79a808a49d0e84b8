//! A review sheet with its table of corrections.

use super::settled::Settled;
use crate::ops::change::corrections::{Destination, Table};
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::run::ReviewSheet;
use serde_json::Value;

/// A review sheet, and the table of its corrections.
pub(super) struct Review<'a> {
    pub(super) destination: Destination<'a>,
    pub(super) table: Table,
    pub(super) settled: Settled,
}

impl<'a> Review<'a> {
    /// Reads the table and the labels.
    ///
    /// # Errors
    /// When a file cannot be read, or the declarations are wrong.
    pub(super) fn open(opened: &OpenProject, sheet: &'a ReviewSheet<'a>) -> Result<Self, OpsError> {
        let scope = Value::Object(opened.settings.scope(&opened.pipeline));
        let destination = Destination::of(opened, sheet, &scope)?;
        let table = Table::read(opened, &destination)?;
        let settled = Settled::of(&table, sheet)?;
        Ok(Self {
            destination,
            table,
            settled,
        })
    }
}

/// Returns the sheet with this name, or the first; `None` if there are none.
///
/// # Errors
/// When there are sheets, but none with this name.
pub(super) fn sheet_of<'a>(
    sheets: &'a [ReviewSheet<'a>],
    name: Option<&str>,
) -> Result<Option<&'a ReviewSheet<'a>>, OpsError> {
    let Some(name) = name else {
        return Ok(sheets.first());
    };
    let found = sheets.iter().find(|sheet| sheet.name == name);
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = sheets.iter().map(|sheet| sheet.name.as_str()).collect();
        OpsError::Usage(format!(
            "there is no review sheet `{name}`; the project has: {}",
            known.join(", ")
        ))
    })
}
