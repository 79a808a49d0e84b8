//! The values that a person may write into a field: labels and numbers.

use milepost_core::expr::place::nearest;
use milepost_formats::xlsx::folded;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The values of a field by their labels, folded.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    values: BTreeMap<String, BTreeSet<String>>,
    /// Labels and values as they are written.
    known: Vec<String>,
    /// The values with their first labels, in the order of the declaration.
    first: Vec<(String, String)>,
}

impl Labels {
    /// Collects the labels of an object: each value has a label or an object of labels.
    pub(crate) fn of(declared: &Value) -> Self {
        let mut found = Self::default();
        for (value, labels) in declared.as_object().into_iter().flatten() {
            found.add(value, value);
            let labels: Vec<&str> = match labels {
                Value::String(label) => vec![label],
                Value::Object(labels) => labels.values().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            for label in &labels {
                found.add(label, value);
            }
            let first = labels.first().copied().unwrap_or(value);
            found.first.push((value.clone(), first.to_owned()));
        }
        found
    }

    fn add(&mut self, label: &str, value: &str) {
        let values = self.values.entry(folded(label)).or_default();
        values.insert(value.to_owned());
        self.known.push(label.to_owned());
    }

    /// Returns the values with their first labels, in the order of the declaration.
    pub(crate) fn first(&self) -> &[(String, String)] {
        &self.first
    }

    /// Returns the values that a label or value may mean.
    pub(crate) fn values(&self, text: &str) -> impl Iterator<Item = &str> {
        let values = self.values.get(&folded(text));
        values.into_iter().flatten().map(String::as_str)
    }

    /// Returns the value that a label or value means.
    ///
    /// # Errors
    /// When no value has this label, or several have it.
    pub(crate) fn value(&self, text: &str, field: &str) -> Result<String, String> {
        let values: Vec<&str> = self.values(text).collect();
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

/// Returns the value that a person wrote for a field, checked against its labels if it has some.
///
/// # Errors
/// When no value has this label, or a number is written with a comma.
pub(crate) fn value_of(
    labels: Option<&Labels>,
    text: String,
    field: &str,
) -> Result<String, String> {
    match labels {
        Some(labels) => labels.value(&text, field),
        None => number_with_point(text),
    }
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
