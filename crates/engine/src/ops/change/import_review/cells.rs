//! Turns the cells that a person filled in into rows of corrections, and refuses what they cannot be.

use crate::ops::change::corrections::{Correction, Labels, Targets, value_of};
use crate::run::ReviewSheet;
use milepost_formats::xlsx::{CellValue, SheetColumns};
use std::collections::BTreeMap;

/// Values for rows that leave these cells empty.
pub(super) struct Defaults<'a> {
    pub(super) who: &'a str,
    pub(super) why: Option<&'a str>,
}

/// Returns the corrections in a sheet, and what is wrong with its cells. `labels` are those of fields by their headers.
pub(super) fn corrections(
    sheet: &ReviewSheet<'_>,
    columns: &SheetColumns,
    labels: &BTreeMap<String, Labels>,
    targets: &Targets,
    defaults: &Defaults<'_>,
) -> (Vec<Correction>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (number, cells) in &columns.rows {
        let row = Row {
            sheet,
            columns,
            number: *number,
            cells,
        };
        if row.filled().next().is_none() {
            continue;
        }
        match row.corrections(labels, targets, defaults) {
            Ok(corrections) => found.extend(corrections),
            Err(wrong) => problems.extend(wrong),
        }
    }
    (found, problems)
}

struct Row<'a> {
    sheet: &'a ReviewSheet<'a>,
    columns: &'a SheetColumns,
    number: u32,
    cells: &'a [CellValue],
}

impl Row<'_> {
    /// Returns the name of the cell below a header, and its value.
    fn cell(&self, header: Option<&String>) -> Option<(String, &CellValue)> {
        let headers = self.sheet.review.headers();
        let at = headers.iter().position(|known| Some(known) == header)?;
        let letters = self.columns.letters.get(at)?;
        let name = format!("{}!{letters}{}", self.sheet.name, self.number);
        Some((name, self.cells.get(at)?))
    }

    /// Returns the headers of the fields that are filled in, and these fields.
    fn filled(&self) -> impl Iterator<Item = (&String, &str)> {
        let fields = self.sheet.review.fields.iter().zip(self.cells);
        let filled = fields.filter(|(_, cell)| **cell != CellValue::Empty);
        filled.map(|((header, field), _)| (header, field.field()))
    }

    /// Returns the text of the cell below a header; `None` if it is empty or there is no such column.
    fn text(&self, header: Option<&String>, problems: &mut Vec<String>) -> Option<String> {
        let (name, cell) = self.cell(header)?;
        text_of(cell).unwrap_or_else(|why| {
            problems.push(format!("{name}: {why}"));
            None
        })
    }

    fn corrections(
        &self,
        labels: &BTreeMap<String, Labels>,
        targets: &Targets,
        defaults: &Defaults<'_>,
    ) -> Result<Vec<Correction>, Vec<String>> {
        let review = &self.sheet.review;
        let mut problems = Vec::new();
        let key = self.text(review.key.as_ref(), &mut problems);
        let shared_key = self.text(review.shared_key.as_ref(), &mut problems);
        let target = match (key, shared_key, &targets.shared_key) {
            (Some(key), _, _) => Some((targets.key.clone(), key, review.key.as_ref())),
            (None, Some(value), Some(column)) => {
                Some((column.clone(), value, review.shared_key.as_ref()))
            }
            _ => None,
        };
        let who = self.text(review.who.as_ref(), &mut problems);
        let who = who.unwrap_or_else(|| defaults.who.to_owned());
        let why = self.text(review.why.as_ref(), &mut problems);
        let why = why.or_else(|| defaults.why.map(str::to_owned));
        let cell = self.cell(review.why.as_ref());
        let is_empty = cell
            .as_ref()
            .is_none_or(|(_, cell)| **cell == CellValue::Empty);
        if why.is_none() && is_empty {
            let place = cell.map(|(name, _)| name);
            let place = place.unwrap_or_else(|| format!("{}!{}", self.sheet.name, self.number));
            problems.push(format!(
                "{place}: expected a reason: write one into the cell, or give `--why TEXT` for all rows without one"
            ));
        }
        if target.is_none() {
            let named = [&review.key, &review.shared_key].into_iter().flatten();
            let named: Vec<String> = named.map(|header| format!("`{header}`")).collect();
            problems.push(format!(
                "{}!{}: expected a value in {}, found none",
                self.sheet.name,
                self.number,
                named.join(" or ")
            ));
        }
        let mut values = Vec::new();
        for (header, field) in self.filled() {
            let Some((cell, _)) = self.cell(Some(header)) else {
                continue;
            };
            let Some(text) = self.text(Some(header), &mut problems) else {
                continue;
            };
            match value_of(labels.get(header), text, field) {
                Ok(value) => values.push((cell, field.to_owned(), value)),
                Err(why) => problems.push(format!("{cell}: {why}")),
            }
        }
        let (Some(why), Some((column, target, header)), true) = (why, target, problems.is_empty())
        else {
            return Err(problems);
        };
        let target_cell = self.cell(header).map(|(name, _)| name);
        let correction = |(cell, field, value)| Correction {
            cell,
            target_cell: target_cell.clone().unwrap_or_default(),
            column: column.clone(),
            target: target.clone(),
            field,
            value,
            who: who.clone(),
            why: why.clone(),
        };
        Ok(values.into_iter().map(correction).collect())
    }
}

/// Returns the text of a cell; `None` if it is empty.
fn text_of(cell: &CellValue) -> Result<Option<String>, String> {
    Ok(Some(match cell {
        CellValue::Empty => return Ok(None),
        CellValue::Text(text) => text.clone(),
        CellValue::Number(number) => number.to_string(),
        CellValue::Bool(is) => is.to_string(),
        CellValue::Date => return Err("expected text or a number, found a date or time".to_owned()),
        CellValue::Error(error) => return Err(format!("expected text or a number, found {error}")),
        CellValue::Formula => {
            return Err(
                "expected a value, found a formula that was not computed: open the workbook in Excel or LibreOffice and save it"
                    .to_owned(),
            );
        }
    }))
}
