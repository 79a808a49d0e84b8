//! Makes the items of a review from the rows of the sheet and the table of corrections.

use super::data::{ItemName, LabelledValue, ReviewColumn, ReviewField, ReviewItem};
use super::rows::{FoundRows, ReviewRow};
use super::source::Review;
use crate::ops::change::corrections::Labels;
use milepost_formats::xlsx::cell_text;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Makes items from rows.
pub(super) struct ItemMaker<'a> {
    review: &'a Review<'a>,
    /// The choices of fields, by header.
    choices: BTreeMap<&'a str, Vec<LabelledValue>>,
}

impl<'a> ItemMaker<'a> {
    pub(super) fn new(review: &'a Review<'a>, found: &FoundRows) -> Self {
        let mut choices = BTreeMap::new();
        for (header, labels) in &review.destination.labels {
            let field = &review.destination.sheet.review.fields[header];
            let mut list = match found.offered.get(header) {
                Some(offered) => offered_choices(offered, labels, field.field()),
                None => Vec::new(),
            };
            if list.is_empty() {
                list.extend(labels.first().iter().map(|(value, label)| LabelledValue {
                    value: value.clone(),
                    label: label.clone(),
                }));
            }
            tell_apart(&mut list);
            choices.insert(header.as_str(), list);
        }
        Self { review, choices }
    }

    /// Makes the item of a row.
    pub(super) fn item(&self, row: &ReviewRow) -> ReviewItem {
        let sheet = self.review.destination.sheet;
        let columns = sheet.shown().into_iter().filter_map(|header| {
            let text = row.texts.get(header)?.clone();
            let header = header.to_owned();
            Some(ReviewColumn { header, text })
        });
        let named_by = match &row.name {
            ItemName::Key(_) => &sheet.review.key,
            ItemName::SharedKey(_) => &sheet.review.shared_key,
        };
        ReviewItem {
            place: row.place,
            name: row.name.clone(),
            named_by: named_by.clone().unwrap_or_default(),
            columns: columns.collect(),
            fields: self.fields(row),
        }
    }

    /// Returns the fields of a row that its corrections may change.
    fn fields(&self, row: &ReviewRow) -> Vec<ReviewField> {
        let destination = &self.review.destination;
        let settled = &self.review.settled;
        let column = match &row.name {
            ItemName::Key(_) => Some(settled.key.as_str()),
            ItemName::SharedKey(_) => destination.shared_key.as_deref(),
        };
        let Some(column) = column else {
            return Vec::new();
        };
        let mut fields = Vec::new();
        for (header, declared) in &destination.sheet.review.fields {
            let field = declared.field();
            if !self.review.table.takes(field, column) {
                continue;
            }
            let choices = self.choices.get(header.as_str());
            let mut choices = choices.cloned().unwrap_or_default();
            choices.sort_by_cached_key(|choice| {
                let chosen = settled.chosen(field, &choice.value);
                std::cmp::Reverse((mentions(&row.texts, choice), chosen))
            });
            let correction = settled.of_item(&row.name);
            fields.push(ReviewField {
                header: header.clone(),
                field: field.to_owned(),
                now: self.now(row, header, field, declared.now()),
                is_known: declared.now().is_some() || field_of(&row.value, field).is_some(),
                choices,
                correction: correction.and_then(|of| of.get(field)).cloned(),
            });
        }
        fields
    }

    /// Returns the present value of a field: what its column shows, or the field of the row.
    fn now(
        &self,
        row: &ReviewRow,
        header: &str,
        field: &str,
        shown: Option<&str>,
    ) -> Option<LabelledValue> {
        let text = match shown {
            Some(shown) => row.texts.get(shown).cloned(),
            None => field_of(&row.value, field)
                .filter(|value| !is_nested(value))
                .and_then(cell_text),
        }?;
        let labels = self.review.destination.labels.get(header);
        let value = labels.and_then(|labels| labels.value(&text, field).ok());
        let value = value.unwrap_or_else(|| text.clone());
        let choices = self.choices.get(header).into_iter().flatten();
        let known = choices.clone().find(|choice| choice.value == value);
        let label = known.map_or(text, |choice| choice.label.clone());
        Some(LabelledValue { value, label })
    }
}

/// Adds the value to the labels that several values have.
fn tell_apart(choices: &mut [LabelledValue]) {
    let mut count: BTreeMap<String, u64> = BTreeMap::new();
    for choice in choices.iter() {
        *count.entry(choice.label.clone()).or_default() += 1;
    }
    for choice in choices {
        if count.get(&choice.label).is_some_and(|count| *count > 1) {
            choice.label = format!("{} ({})", choice.label, choice.value);
        }
    }
}

/// Shorter words occur in many texts by chance.
const SHORTEST: usize = 4;

/// Returns how many words of a value and its label the texts of an item mention: such a value is likely.
fn mentions(texts: &BTreeMap<String, String>, choice: &LabelledValue) -> usize {
    let both = format!("{} {}", choice.value, choice.label).to_lowercase();
    let words = both.split(|sign: char| !sign.is_alphanumeric());
    let words: BTreeSet<&str> = words
        .filter(|word| word.chars().count() >= SHORTEST)
        .collect();
    let texts: Vec<String> = texts.values().map(|text| text.to_lowercase()).collect();
    let is_mentioned = |word: &&&str| texts.iter().any(|text| text.contains(**word));
    words.iter().filter(is_mentioned).count()
}

/// Returns the values of the labels that a column offers, in their order. Of a label that several values have, it returns each.
fn offered_choices(offered: &[String], labels: &Labels, field: &str) -> Vec<LabelledValue> {
    let mut choices = Vec::new();
    let mut known = BTreeSet::new();
    for label in offered {
        let values = match labels.value(label, field) {
            Ok(value) => vec![value],
            Err(_) => labels.values(label).map(str::to_owned).collect(),
        };
        for value in values {
            if known.insert(value.clone()) {
                let label = label.clone();
                choices.push(LabelledValue { value, label });
            }
        }
    }
    choices
}

/// Returns a field of a row; dots lead into objects.
fn field_of<'a>(row: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(row, |at, name| at.get(name))
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
