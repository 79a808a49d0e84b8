//! Joins two lists of records by key, and returns what differs in the order of the new list, then what was removed.

use super::compared::Compared;
use super::totals::{RevisionSide, Tally, Totals, short};
use crate::steps::batch_context::parse_failure;
use crate::steps::records::{RecordPosition, RecordProgram, RecordReader, Records};
use milepost_core::expr::jq::{Evaluator, JqError, Limited};
use milepost_core::expr::json;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::step::DiffStep;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// How a record differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Only the new revision has it.
    Added,
    /// Only the earlier revision has it.
    Removed,
    /// Both have it.
    Changed,
}

/// A record that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RecordChange {
    /// How it differs.
    pub change: ChangeKind,
    /// The key.
    pub key: String,
    /// The group; of a removed record the earlier one.
    pub group: String,
    /// The earlier fields; null for an added record.
    pub from: Option<Map<String, Value>>,
    /// The fields; null for a removed record.
    pub to: Option<Map<String, Value>>,
    /// The names of the fields that differ; empty for an added or removed record.
    pub differs: Vec<String>,
}

/// The program and the tolerance that compare records.
pub(crate) struct Comparer<'a> {
    /// For the records that are read in turn.
    in_turn: RecordProgram<'a>,
    /// For earlier records that are read again.
    again: Limited<'a>,
    tolerance: f64,
    threads: usize,
}

impl<'a> Comparer<'a> {
    /// Binds the program of a step to the values of the scope. Programs run on this many threads.
    ///
    /// # Errors
    /// When a value cannot be expressed in jq.
    pub(crate) fn new(
        step: &'a DiffStep,
        scope: &'a Map<String, Value>,
        evaluator: &'a dyn Evaluator,
        threads: usize,
    ) -> Result<Self, JqError> {
        let in_turn = RecordProgram {
            program: &step.compare,
            scope,
            evaluator,
        };
        Ok(Self {
            again: in_turn.limited()?,
            in_turn,
            tolerance: step.tolerance,
            threads,
        })
    }

    /// Passes what is compared of every record to `each`, with its digest.
    fn each(
        &self,
        records: &Records,
        each: &mut dyn FnMut((Compared, u64), RecordPosition) -> Result<(), String>,
    ) -> Result<(), Outcome> {
        let compared = |text: &str| {
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            let record = Compared::of(value)?;
            let digest = digest(&record);
            Ok((record, digest))
        };
        records.map(self.threads, Some(&self.in_turn), &compared, each)
    }
}

/// Identifies a record: the digest of its key, and a number that tells records with equal keys apart.
type Id = (u64, u32);

struct OldRecord {
    place: RecordPosition,
    digest: u64,
    group: u32,
    is_there: bool,
}

/// Numbers records with equal keys.
#[derive(Default)]
struct Ids(HashMap<u64, u32>);

impl Ids {
    fn next(&mut self, record: &Compared) -> Id {
        let key = short(&record.key());
        let number = self.0.entry(key).or_default();
        *number += 1;
        (key, *number)
    }
}

/// Compares two lists. Passes each record that differs to `take`.
///
/// # Errors
/// When a record cannot be read, the program fails, or `take` fails.
pub(crate) fn compare(
    comparer: &Comparer<'_>,
    old: &Records,
    new: &Records,
    take: &mut dyn FnMut(RecordChange) -> Result<(), Outcome>,
) -> Result<Totals, Outcome> {
    let mut tally = Tally::default();
    let mut olds: Vec<OldRecord> = Vec::new();
    let mut index: HashMap<Id, u32> = HashMap::new();
    let mut ids = Ids::default();
    comparer.each(old, &mut |(record, digest), place| {
        let group = tally.add(RevisionSide::Old, &record)?;
        index.insert(ids.next(&record), olds.len() as u32);
        olds.push(OldRecord {
            place,
            digest,
            group,
            is_there: false,
        });
        Ok(())
    })?;
    let mut reader = old.reader();
    let mut ids = Ids::default();
    comparer.each(new, &mut |(record, digest), _| {
        let group = tally.add(RevisionSide::New, &record)?;
        let Some(&at) = index.get(&ids.next(&record)) else {
            tally.group(group).added += 1;
            return take(RecordChange {
                change: ChangeKind::Added,
                key: record.key(),
                group: record.group,
                from: None,
                to: Some(record.fields),
                differs: Vec::new(),
            })
            .map_err(|outcome| outcome.message);
        };
        let was = &mut olds[at as usize];
        was.is_there = true;
        let earlier = if digest == was.digest {
            None
        } else {
            Some(read_again(&mut reader, was.place, &comparer.again)?)
        };
        let differs = earlier.as_ref();
        let differs = differs.map_or_else(Vec::new, |earlier| {
            record.differing(earlier, comparer.tolerance)
        });
        let has_moved = was.group != group;
        if has_moved {
            tally.group(was.group).moved_out += 1;
            tally.group(group).moved_in += 1;
        } else if differs.is_empty() {
            tally.group(group).unchanged += 1;
        } else {
            tally.group(group).changed += 1;
        }
        match earlier {
            Some(earlier) if has_moved || !differs.is_empty() => take(RecordChange {
                change: ChangeKind::Changed,
                key: record.key(),
                group: record.group,
                from: Some(earlier.fields),
                to: Some(record.fields),
                differs,
            })
            .map_err(|outcome| outcome.message),
            _ => Ok(()),
        }
    })?;
    for was in olds.iter().filter(|was| !was.is_there) {
        tally.group(was.group).removed += 1;
        let earlier = read_again(&mut reader, was.place, &comparer.again).map_err(parse_failure)?;
        take(RecordChange {
            change: ChangeKind::Removed,
            key: earlier.key(),
            group: earlier.group,
            from: Some(earlier.fields),
            to: None,
            differs: Vec::new(),
        })?;
    }
    Ok(tally.totals(comparer.tolerance))
}

/// Returns the digest of what is compared of a record.
fn digest(record: &Compared) -> u64 {
    short(&json!([record.group, record.fields]).to_string())
}

/// Reads what is compared of an earlier record.
fn read_again(
    reader: &mut RecordReader<'_>,
    place: RecordPosition,
    program: &Limited<'_>,
) -> Result<Compared, String> {
    let text = reader.read(place).map_err(|outcome| outcome.message)?;
    let value = json::parse_bytes(text).map_err(|error| error.to_string())?;
    Compared::of(program.one(&value).map_err(|error| error.to_string())?)
}
