//! Corrections of records by people: rows of the input that a review sheet names.

mod destination;
mod labels;
mod table;

pub(crate) use destination::Destination;
pub(crate) use labels::{Labels, value_of};
pub(crate) use table::Table;

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::digest::Digest;
use milepost_core::base::visible::visible;
use milepost_core::base::words;
use milepost_core::model::event::{Event, EventType};
use serde::Serialize;
use std::fmt;

/// A correction by a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Correction {
    /// The cell of the workbook with the value, such as `Review!M12`, or the header of the field on the review page.
    pub cell: String,
    /// The cell or header that names the record or records.
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

/// The columns of the table of corrections that name records.
pub(crate) struct Targets {
    pub(crate) key: String,
    pub(crate) shared_key: Option<String>,
}

/// Where corrections were written by a person.
pub(crate) enum Origin<'a> {
    /// The workbook with this name.
    Workbook(&'a str),
    /// The review page.
    Page,
}

impl Origin<'_> {
    /// Returns the name for the journal.
    fn name(&self) -> &str {
        match self {
            Self::Workbook(name) => name,
            Self::Page => "review page",
        }
    }
}

/// The corrections that were added to a table, and those that it had already.
pub(crate) type Sorted = (Vec<Correction>, Vec<Correction>);

/// Adds corrections to the table and records them, with the workspace locked. All are checked first; if one is refused, nothing is
/// added. `find` returns the corrections, and what is wrong with them. The record is written before the table: after a crash, no
/// correction is without a record.
///
/// # Errors
/// When a correction is refused, a person modifies the table meanwhile, another process has locked the workspace, or the disk fails.
pub(crate) fn save(
    opened: &mut OpenProject,
    command: &str,
    destination: &Destination<'_>,
    origin: &Origin<'_>,
    find: impl FnOnce(&Targets) -> (Vec<Correction>, Vec<String>),
) -> Result<Sorted, OpsError> {
    let locked = lock_and_read(opened, command)?;
    // This takes a while, in which a person may save the table.
    let (lock, mut recorder, _) = locked.recover(opened, command)?;
    let table = Table::read(opened, destination)?;
    let targets = Targets {
        key: table.key()?,
        shared_key: destination.shared_key.clone(),
    };
    let (mut found, mut problems) = find(&targets);
    for Correction { who, why, .. } in &mut found {
        for text in [who, why] {
            *text = visible(text).into_owned();
        }
    }
    let (added, known) = table.sort(found, &mut problems);
    table.check(&added, &mut problems);
    if !problems.is_empty() {
        return Err(OpsError::NotImported(problems));
    }
    if !added.is_empty() {
        let text = table.with_rows(&added)?;
        let (from, sheet) = (origin.name(), &destination.sheet.name);
        let into = table.path.to_string();
        let count = words::count(added.len() as u64, "correction", "corrections");
        let summary = format!("imported {count} from {from}, sheet {sheet}, into {into}");
        let event = Event::CorrectionsImported {
            file: from.to_owned(),
            into: into.clone(),
            from: table.digest(),
            to: Digest::of(&text),
            added: added.len() as u64,
            corrections: added
                .iter()
                .take(RECORDED)
                .map(ToString::to_string)
                .collect(),
        };
        table.check_unmodified(opened)?;
        recorder.record_with(EventType::Review, "milepost", event, summary, vec![into])?;
        recorder.flush()?;
        let written = table.write(opened, &text);
        let status = if written.is_ok() {
            "imported"
        } else {
            "refused"
        };
        recorder.end_without_stages(status, status)?;
        recorder.flush()?;
        written?;
    }
    drop(lock);
    Ok((added, known))
}
