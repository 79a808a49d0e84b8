//! Saves the decision of a person on an item of a review sheet.

use super::data::{ItemName, ReviewField};
use super::item::ItemMaker;
use super::rows::read;
use super::source::{Review, sheet_of};
use crate::ops::change::corrections::{Correction, Origin, Targets, save, value_of};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use crate::run::{ReviewSheet, review_sheets};
use serde::Serialize;
use std::collections::BTreeMap;

/// The decision of a person on an item.
#[derive(Debug, Clone)]
pub struct ReviewDecision {
    /// The review sheet; by default the first that the project declares.
    pub sheet: Option<String>,
    /// The item.
    pub item: ItemName,
    /// The decisions on fields, by the headers of their columns.
    pub fields: BTreeMap<String, FieldDecision>,
    /// Who decides; by default the user of this process.
    pub who: Option<String>,
    /// Why.
    pub why: String,
}

/// The decision on a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldDecision {
    /// A new value, or its label.
    Value(String),
    /// The present value is right: a correction with the same value settles the item.
    Keep,
}

/// The corrections that were saved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Corrected {
    /// The table of corrections.
    pub into: String,
    /// The corrections that were added to the table.
    pub added: Vec<Correction>,
    /// The corrections that the table had already.
    pub known: Vec<Correction>,
}

/// Adds a decision to the table of corrections, as [`import_review`](super::super::import_review::import_review) does with a
/// workbook: no row of the table is changed or removed.
///
/// # Errors
/// [`OpsError::NotImported`] with a reason a line, which begins with the header of the column concerned, when a value is refused;
/// when the sheet has no such item, another process has locked the workspace, or the disk fails.
pub fn correct(request: &Request, decision: &ReviewDecision) -> Result<Corrected, OpsError> {
    let mut opened = open(request)?;
    let pipeline = opened.pipeline.clone();
    let sheets = review_sheets(&pipeline).map_err(|error| OpsError::World(error.to_string()))?;
    let sheet = sheet_of(&sheets, decision.sheet.as_deref())?
        .ok_or_else(|| OpsError::Usage("the project has no review sheet".to_owned()))?;
    let review = Review::open(&opened, sheet)?;
    let mut pick = |name: &ItemName| (*name == decision.item).then_some(0);
    let found = read(&opened, sheet, &mut pick)?;
    let Some(row) = found.rows.first() else {
        let (ItemName::Key(name) | ItemName::SharedKey(name)) = &decision.item;
        let sheet = &sheet.name;
        return Err(OpsError::Usage(format!(
            "the sheet {sheet} has no item `{name}`: it may have been settled by a run; reload the list"
        )));
    };
    let fields = ItemMaker::new(&review, &found).item(row).fields;
    let who = request.person(decision.who.as_deref());
    let find = |targets: &Targets| corrections(decision, &review, sheet, &fields, &who, targets);
    let (added, known) = save(
        &mut opened,
        &request.command,
        &review.destination,
        &Origin::Page,
        find,
    )?;
    Ok(Corrected {
        into: review.destination.path.to_string(),
        added,
        known,
    })
}

/// Returns the corrections of a decision, and what is wrong with it.
fn corrections(
    decision: &ReviewDecision,
    review: &Review<'_>,
    sheet: &ReviewSheet<'_>,
    fields: &[ReviewField],
    who: &str,
    targets: &Targets,
) -> (Vec<Correction>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let why_header = sheet.review.why.as_deref().unwrap_or("Why");
    if decision.why.trim().is_empty() {
        problems.push(format!("{why_header}: expected a reason"));
    }
    if who.trim().is_empty() {
        let who_header = sheet.review.who.as_deref().unwrap_or("Who");
        problems.push(format!("{who_header}: expected a name"));
    }
    if decision.fields.is_empty() {
        let headers: Vec<&str> = fields.iter().map(|field| field.header.as_str()).collect();
        problems.push(format!("expected a value in {}", headers.join(" or ")));
    }
    let (named, column, target) = match &decision.item {
        ItemName::Key(key) => (&sheet.review.key, Some(&targets.key), key),
        ItemName::SharedKey(key) => (&sheet.review.shared_key, targets.shared_key.as_ref(), key),
    };
    let Some(column) = column else {
        problems.push(format!(
            "{}: no step of the stage `{}` takes corrections by a shared key",
            named.as_deref().unwrap_or_default(),
            sheet.stage.name
        ));
        return (found, problems);
    };
    for (header, decided) in &decision.fields {
        let Some(field) = fields.iter().find(|field| field.header == *header) else {
            problems.push(format!("{header}: expected a field of this item"));
            continue;
        };
        let labels = review.destination.labels.get(header);
        let value = match decided {
            FieldDecision::Value(text) => value_of(labels, text.trim().to_owned(), &field.field),
            FieldDecision::Keep => match &field.now {
                // A column shows labels, which several values may have.
                Some(now) if sheet.review.fields[header].now().is_some() => {
                    value_of(labels, now.value.clone(), &field.field)
                }
                Some(now) => Ok(now.value.clone()),
                None if field.is_known => {
                    Err(format!("`{}` has no value to keep: enter one", field.field))
                }
                None => Err(format!(
                    "the sheet does not show the value of `{}`: enter one",
                    field.field
                )),
            },
        };
        match value {
            Ok(value) => found.push(Correction {
                cell: header.clone(),
                target_cell: named.clone().unwrap_or_default(),
                column: column.clone(),
                target: target.clone(),
                field: field.field.clone(),
                value,
                who: who.trim().to_owned(),
                why: decision.why.trim().to_owned(),
            }),
            Err(why) => problems.push(format!("{header}: {why}")),
        }
    }
    (found, problems)
}
