//! Turns the cells that a person filled in into rows of corrections, and refuses what they cannot be.

use super::{Correction, Defaults};
use crate::run::ReviewSheet;
use milepost_core::expr::place::nearest;
use milepost_formats::xlsx::{CellValue, SheetColumns, folded};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The values of a field by their labels, folded.
#[derive(Debug, Default)]
pub(super) struct Labels {
    values: BTreeMap<String, BTreeSet<String>>,
    /// Labels and values as they are written.
    known: Vec<String>,
}

impl Labels {
    /// Collects the labels of an object: each value has a label or an object of labels.
    pub(super) fn of(declared: &Value) -> Self {
        let mut found = Self::default();
        for (value, labels) in declared.as_object().into_iter().flatten() {
            found.add(value, value);
            match labels {
                Value::String(label) => found.add(label, value),
                Value::Object(labels) => {
                    let labels = labels.values().filter_map(Value::as_str);
                    labels.for_each(|label| found.add(label, value));
                }
                _ => {}
            }
        }
        found
    }

    fn add(&mut self, label: &str, value: &str) {
        let values = self.values.entry(folded(label)).or_default();
        values.insert(value.to_owned());
        self.known.push(label.to_owned());
    }

    /// Returns the value that a label or value means.
    fn value(&self, text: &str, field: &str) -> Result<String, String> {
        let values = self.values.get(&folded(text));
        let values: Vec<&str> = values.into_iter().flatten().map(String::as_str).collect();
        match values.as_slice() {
            [one] => Ok((*one).to_owned()),
            [] => {
                let near = nearest(text, self.known.iter().map(String::as_str));
                let hint =
                    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Err(format!(
                    "expected a value of `{field}`, found `{text}`{hint}"
                ))
            }
            _ if values.contains(&text) => Ok(text.to_owned()),
            many => Err(format!(
                "`{text}` is the label of {}: write one of them",
                many.join(" and ")
            )),
        }
    }
}

/// The columns of the table of corrections that name records.
pub(super) struct Targets {
    pub(super) key: String,
    pub(super) shared_key: Option<String>,
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
            let value = match labels.get(header) {
                Some(labels) => labels.value(&text, field),
                None => number_with_point(text),
            };
            match value {
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

/// Refuses a number that is written as text with a comma: it can be a decimal or a thousands separator.
fn number_with_point(text: String) -> Result<String, String> {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    if text.contains(',') && is_number(&text.replace(',', "")) {
        return Err(format!(
            "expected a number, found the text `{text}`: write it with a decimal point"
        ));
    }
    Ok(text)
}
