//! The list of what needs a person, and the decision of a person on one item of it.

mod data;
mod decision;
mod item;
mod rows;
mod settled;
mod source;

pub use data::{
    ExistingCorrection, ItemName, LabelledValue, ReviewColumn, ReviewField, ReviewItem, ReviewList,
    ReviewOptions,
};
pub use decision::{Corrected, FieldDecision, ReviewDecision, correct};

use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use crate::run::review_sheets;
use item::ItemMaker;
use rows::read;
use source::{Review, sheet_of};

/// Returns items of a review sheet: the rows that the sheet has with the outputs of its stage as they are on disk. `None` if the
/// project declares no review sheet. Nothing is written.
///
/// # Errors
/// When the declarations are wrong, the project has no such sheet, or a file cannot be read.
pub fn review_list(
    request: &Request,
    options: &ReviewOptions,
) -> Result<Option<ReviewList>, OpsError> {
    let opened = open(request)?;
    let pipeline = opened.pipeline.clone();
    let sheets = review_sheets(&pipeline).map_err(|error| OpsError::World(error.to_string()))?;
    let Some(sheet) = sheet_of(&sheets, options.sheet.as_deref())? else {
        return Ok(None);
    };
    let review = Review::open(&opened, sheet)?;
    let end = options.offset.saturating_add(options.limit);
    let (mut total, mut unsettled) = (0, 0);
    let mut pick = |name: &ItemName| {
        let is_open = !review.settled.has(name);
        unsettled += u64::from(is_open);
        if options.open_only && !is_open {
            let is_it = options.item.as_ref() == Some(name);
            return is_it.then_some(total);
        }
        let place = total;
        total += 1;
        let is_it = match &options.item {
            Some(item) => item == name,
            None => (options.offset..end).contains(&place),
        };
        is_it.then_some(place)
    };
    let found = read(&opened, sheet, &mut pick)?;
    let recorded = found.recorded(&review.destination.path);
    let maker = ItemMaker::new(&review, &found);
    let items = found.rows.iter().map(|row| maker.item(row));
    Ok(Some(ReviewList {
        sheets: sheets.iter().map(|sheet| sheet.name.clone()).collect(),
        sheet: sheet.name.clone(),
        stage: sheet.stage.name.clone(),
        into: review.destination.path.to_string(),
        has_run: found.has_run,
        items: items.collect(),
        total,
        open: unsettled,
        unapplied: if found.has_run {
            review.table.rows_since(recorded)
        } else {
            Some(0)
        },
    }))
}
