//! The totals of batches: what a checkpoint and a report say of all batches of a stage. They are kept for each page of a manifest, so
//! that a run reads only the pages with changed batches.

use super::recorded::batch_state::BatchState;
use super::recorded::call::Spent;
use super::recorded::record::BatchRecord;
use crate::base::digest::{Digest, Hasher};
use crate::base::path::number_in;
use crate::model::fingerprint::{FactKind, FactValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most entries that a list in a summary keeps.
const LISTED: usize = 1000;

/// The totals of batches, in natural order of their keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BatchTotals {
    /// The number of batches.
    pub batches: u64,
    /// The number of their files.
    pub files: u64,
    /// The number of elements, if the stage counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// The sum of their durations.
    pub milliseconds: u64,
    /// The cost of the calls behind them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The merged summaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// True if all verdicts are true; `None` without verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// The digest of the only input file, or of the list of several as `sha256sum` writes it, sorted by path.
    pub inputs: Option<Digest>,
    /// The numbers in the keys, in order.
    pub numbers: Vec<KeyNumbers>,
    /// True if all batches are settled ([`BatchState::is_settled`]).
    pub settled: bool,
}

/// The numbers in the keys of batches that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KeyNumbers {
    /// The numbers from the first to the last.
    Range(u64, u64),
    /// The count of consecutive keys without a number.
    Without(u64),
}

impl KeyNumbers {
    /// Returns the number in a key.
    pub(crate) fn of(key: &str) -> Self {
        match number_in(key) {
            Some(number) => Self::Range(number, number),
            None => Self::Without(1),
        }
    }
}

impl BatchTotals {
    /// Returns the totals of batches, which come in natural order, without the digest of their inputs.
    pub fn of<'a>(batches: impl IntoIterator<Item = (&'a str, &'a BatchState)>) -> Self {
        let mut all = Self {
            settled: true,
            ..Self::default()
        };
        for (key, batch) in batches {
            all.batches += 1;
            all.add_numbers(KeyNumbers::of(key));
            all.settled &= batch.is_settled();
            if let Some(record) = &batch.record {
                all.add_record(record);
            }
        }
        all
    }

    /// Returns the totals of pages, which come in order.
    pub fn of_pages<'a>(pages: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self {
            settled: true,
            ..Self::default()
        };
        let mut lists = Vec::new();
        for page in pages {
            all.batches += page.batches;
            all.files += page.files;
            all.milliseconds = all.milliseconds.saturating_add(page.milliseconds);
            all.add(
                page.elements,
                page.verdict,
                page.spent,
                page.summary.as_ref(),
            );
            for numbers in &page.numbers {
                all.add_numbers(*numbers);
            }
            all.settled &= page.settled;
            lists.extend(page.inputs);
        }
        all.inputs = match lists.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => {
                let mut hasher = Hasher::new();
                for list in &lists {
                    hasher.update(format!("{}\n", list.hex()));
                }
                Some(hasher.finish())
            }
        };
        all
    }

    fn add_record(&mut self, record: &BatchRecord) {
        self.files += record.outputs.len() as u64;
        self.milliseconds = self.milliseconds.saturating_add(record.duration_ms);
        let summary = record.summary.as_deref();
        self.add(
            record.elements,
            record.verdict,
            record.spent.as_deref().copied(),
            summary,
        );
    }

    fn add(
        &mut self,
        elements: Option<u64>,
        verdict: Option<bool>,
        spent: Option<Spent>,
        summary: Option<&Value>,
    ) {
        if let Some(elements) = elements {
            let sum = self.elements.get_or_insert(0);
            *sum = sum.saturating_add(elements);
        }
        if let Some(verdict) = verdict {
            *self.verdict.get_or_insert(true) &= verdict;
        }
        if let Some(spent) = spent {
            *self.spent.get_or_insert_default() += spent;
        }
        if let Some(summary) = summary {
            self.summary = Some(match self.summary.take() {
                Some(before) => merged(before, summary.clone()),
                None => summary.clone(),
            });
        }
    }

    fn add_numbers(&mut self, numbers: KeyNumbers) {
        match (self.numbers.last_mut(), numbers) {
            (Some(KeyNumbers::Range(_, last)), KeyNumbers::Range(first, end))
                if last.checked_add(1) == Some(first) =>
            {
                *last = end;
            }
            (Some(KeyNumbers::Without(before)), KeyNumbers::Without(more)) => *before += more,
            _ => self.numbers.push(numbers),
        }
    }
}

/// Returns the input files of batches with their digests.
pub fn inputs<'a>(
    batches: impl IntoIterator<Item = &'a BatchState>,
) -> BTreeMap<&'a str, &'a FactValue> {
    let records = batches
        .into_iter()
        .filter_map(|batch| batch.record.as_ref());
    let facts = records.flat_map(|record| record.facts.iter());
    facts
        .filter(|(key, _)| key.kind == FactKind::Input)
        .map(|(key, value)| (&*key.name, value))
        .collect()
}

/// Returns the digest of one input file; of several, that of their list in the format of `sha256sum`.
pub fn inputs_digest(inputs: &BTreeMap<&str, &FactValue>) -> Digest {
    if inputs.len() == 1
        && let Some(digest) = inputs.values().find_map(|value| value.digest())
    {
        return digest;
    }
    let mut hasher = Hasher::new();
    for (name, value) in inputs {
        let value = value.to_string();
        let hex = value.strip_prefix("sha256:").unwrap_or(&value);
        hasher.update(format!("{hex}  {name}\n"));
    }
    hasher.finish()
}

/// Merges two summaries: adds numbers, joins lists, merges objects, and keeps the first of other values.
pub fn merged(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_u64(), b.as_u64()) {
            (Some(a), Some(b)) => json!(a + b),
            _ => json!(a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0)),
        },
        (Value::Array(mut a), Value::Array(b)) => {
            a.extend(b);
            a.truncate(LISTED);
            Value::Array(a)
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut all: Map<String, Value> = a;
            for (key, value) in b {
                let joined = match all.remove(&key) {
                    Some(first) => merged(first, value),
                    None => value,
                };
                all.insert(key, joined);
            }
            Value::Object(all)
        }
        (a, _) => a,
    }
}
