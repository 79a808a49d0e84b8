//! The step `merge`: joins the records of many files in a given order, and applies corrections.
//!
//! Records stay in their files until they are written; memory holds 32 bytes for each.

mod corrections;

use super::batch_context::{BatchContext, StepReport, StepResult, output_failure, parse_failure};
use super::records::{RecordPosition, RecordProgram, Records};
use corrections::Corrections;
use milepost_core::base::digest::Digest;
use milepost_core::expr::json;
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::step::MergeStep;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

#[derive(Clone, Copy)]
struct MergeRecord {
    place: RecordPosition,
    /// The index of the next record with the same key; its own index if there is none.
    next: u32,
}

/// All records by key, in reading order.
#[derive(Default)]
struct Index {
    spots: Vec<MergeRecord>,
    /// First and last record with a key, by the first 16 bytes of its digest.
    by_key: HashMap<[u8; 16], (u32, u32)>,
}

/// Runs the step.
///
/// # Errors
/// When a record cannot be read or has no key, or a correction names a field that does not exist.
pub(crate) fn merge(ctx: &mut BatchContext<'_>, out: &str, step: &MergeStep) -> StepResult {
    let workers = Rc::clone(&ctx.jq);
    let key = RecordProgram {
        program: &step.key,
        scope: &ctx.base,
        evaluator: &*workers,
    };
    let records = Records::of(ctx, "merge", &step.records)?;
    let mut index = Index::of(&records, &key, ctx.threads)?;
    let bound = key.limited().map_err(parse_failure)?;
    let mut corrections = match &step.corrections {
        Some(name) => Corrections::of(name, step.shared_key.as_deref(), &ctx.scope)?,
        None => Corrections::default(),
    };
    let sequence = index.sequence(ctx, step.order.as_ref())?;
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = ctx.outputs.create(out, None).map_err(failed)?;
    sink.write_all(b"{\"elements\":[\n").map_err(failed)?;
    let mut reader = records.reader();
    for (place, &spot) in sequence.iter().enumerate() {
        let text = reader.read(index.spots[spot as usize].place)?;
        if !corrections.is_empty() {
            let record = json::parse_bytes(text).map_err(parse_failure)?;
            let key = key_text(&bound.one(&record).map_err(parse_failure)?)?;
            let key_of = |record: &Value| key_text(&bound.one(record).ok()?).ok();
            if let Some(corrected) = corrections.apply(&key, record, &key_of) {
                *text = corrected.to_string().into_bytes();
            }
        }
        sink.write_all(text).map_err(failed)?;
        sink.write_all(if place + 1 < sequence.len() {
            b",\n"
        } else {
            b"\n"
        })
        .map_err(failed)?;
    }
    let warnings = corrections.finish()?;
    writeln!(sink, "],\"count\":{}}}", sequence.len()).map_err(failed)?;
    sink.finish().map_err(failed)?;
    Ok(StepReport {
        warnings,
        ..StepReport::default()
    })
}

fn key_text(value: &Value) -> Result<String, Outcome> {
    json::key_text(value)
        .ok_or_else(|| parse_failure(format!("`key`: expected text or a number, found {value}")))
}

fn short(key: &str) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&Digest::of(key).bytes()[..16]);
    half
}

impl Index {
    fn of(records: &Records, key: &RecordProgram<'_>, threads: usize) -> Result<Self, Outcome> {
        let short_of = |key: &str| {
            let key = serde_json::from_str(key).map_err(|error| error.to_string())?;
            let key = key_text(&key).map_err(|outcome| outcome.message)?;
            Ok(short(&key))
        };
        let mut index = Self::default();
        records.map(threads, Some(key), &short_of, &mut |key, place| {
            index.add(key, place);
            Ok(())
        })?;
        Ok(index)
    }

    fn add(&mut self, key: [u8; 16], place: RecordPosition) {
        let at = self.spots.len() as u32;
        self.spots.push(MergeRecord { place, next: at });
        match self.by_key.entry(key) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert((at, at));
            }
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                let last = entry.get().1;
                self.spots[last as usize].next = at;
                entry.get_mut().1 = at;
            }
        }
    }

    /// Returns the records in the declared order. Records that the order does not name follow at the end, so that none is
    /// dropped before the conservation check.
    fn sequence(
        &mut self,
        ctx: &BatchContext<'_>,
        order: Option<&Select>,
    ) -> Result<Vec<u32>, Outcome> {
        let Some(order) = order else {
            return Ok((0..self.spots.len() as u32).collect());
        };
        let mut sequence = Vec::with_capacity(self.spots.len());
        let mut used = vec![false; self.spots.len()];
        ctx.scope.select(order, &mut |key| -> Result<(), Outcome> {
            let key = key_text(&key)?;
            if let Some((first, last)) = self.by_key.get_mut(&short(&key)) {
                if !used[*first as usize] {
                    used[*first as usize] = true;
                    sequence.push(*first);
                }
                if first != last {
                    *first = self.spots[*first as usize].next;
                }
            }
            Ok(())
        })?;
        sequence.extend((0..self.spots.len() as u32).filter(|&spot| !used[spot as usize]));
        Ok(sequence)
    }
}
