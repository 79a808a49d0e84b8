//! The step `split`: packs records into batches by their questions.
//!
//! It reads the records twice: once for their questions and positions, once to copy their text into batches. Memory holds 24
//! bytes for each record, and the digest of each distinct question.

mod pack;

use super::batch_context::{BatchContext, StepReport, StepResult, output_failure, parse_failure};
use super::records::{RecordPosition, RecordProgram, RecordReader, Records};
use milepost_core::base::digest::Digest;
use milepost_core::expr::jq::{EvaluationInput, Limited};
use milepost_core::expr::json;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::step::{ASSIGNMENT, SplitStep};
use pack::{BatchLimits, Slot, pack};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, Write};
use std::rc::Rc;

/// Which questions stand in which batches: kept so that they stay there.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct Assignment {
    /// At most so many questions a batch.
    pub(crate) size: u64,
    /// At most so many elements a batch.
    pub(crate) max_elements: u64,
    /// By the digest of a question: pairs of a batch's number and how many elements of the question stand in it.
    pub(crate) questions: BTreeMap<String, Vec<(u64, u64)>>,
}

/// A record: its position and its question.
struct SplitRecord {
    place: RecordPosition,
    question: u32,
}

/// Runs the step.
///
/// # Errors
/// When the records cannot be read, the question fails, or a file cannot be written.
pub(crate) fn split(ctx: &mut BatchContext<'_>, out: &str, step: &SplitStep) -> StepResult {
    let question = step.question.as_ref();
    let limits = BatchLimits {
        questions: step.size.number(&ctx.base).map_err(parse_failure)?,
        elements: step.max_elements.number(&ctx.base).map_err(parse_failure)?,
    };
    let records = Records::of(ctx, "split", &step.records)?.items();
    let workers = Rc::clone(&ctx.jq);
    let question = question.map(|program| RecordProgram {
        program,
        scope: &ctx.base,
        evaluator: &*workers,
    });
    let (spots, digests) = distinct_questions(&records, question.as_ref(), ctx.threads)?;
    let question = question.as_ref().map(RecordProgram::limited);
    let mut question = question.transpose().map_err(parse_failure)?;
    let mut counts = vec![0_u64; digests.len()];
    for spot in &spots {
        counts[spot.question as usize] += 1;
    }
    let before = earlier(ctx, limits);
    let history: Vec<Vec<Slot>> = digests
        .iter()
        .map(|question| {
            // Earlier versions wrote the digest of the text.
            let known = before
                .get(&question.value.hex())
                .or_else(|| before.get(&question.text.hex()));
            known.cloned().unwrap_or_default()
        })
        .collect();
    let slots = pack(&counts, &history, limits);
    let batches = elements_by_batch(&spots, &slots);
    let mut reader = records.reader();
    for (number, elements) in &batches {
        let batch = SplitBatch {
            number: *number,
            elements,
        };
        write_batch(ctx, out, &batch, &spots, &mut reader, question.as_mut())?;
    }
    write_assignment(ctx, limits, &digests, &slots)?;
    Ok(StepReport {
        summary: Some(
            json!({ "elements": spots.len(), "questions": digests.len(), "batches": batches.len() }),
        ),
        ..StepReport::default()
    })
}

/// The digests of a question: of its value, and of the text in which it appears first.
struct QuestionDigest {
    value: Digest,
    text: Digest,
}

/// Returns the position and question of every record, and the digests of distinct questions in order of first appearance.
fn distinct_questions(
    records: &Records,
    question: Option<&RecordProgram<'_>>,
    threads: usize,
) -> Result<(Vec<SplitRecord>, Vec<QuestionDigest>), Outcome> {
    let mut spots = Vec::new();
    let mut digests = Vec::new();
    let mut known: HashMap<Digest, u32> = HashMap::new();
    let digest_of = |question: &str| {
        let value = json::parse(question).map(|value| json::canonical(&value));
        let text = Digest::of(question);
        Ok((value.map_or(text, Digest::of), text))
    };
    records.map(
        threads,
        question,
        &digest_of,
        &mut |(digest, text), place| {
            let index = *known.entry(digest).or_insert_with(|| {
                digests.push(QuestionDigest {
                    value: digest,
                    text,
                });
                digests.len() as u32 - 1
            });
            spots.push(SplitRecord {
                place,
                question: index,
            });
            Ok(())
        },
    )?;
    Ok((spots, digests))
}

/// Returns the questions of elements.
fn questions(
    elements: &[String],
    question: Option<&mut Limited<'_>>,
) -> Result<Vec<Value>, Outcome> {
    match question {
        Some(question) => {
            let inputs: Vec<EvaluationInput<'_>> =
                elements.iter().map(|text| text.as_str().into()).collect();
            question.one_of_each(&[], &inputs).map_err(parse_failure)
        }
        None => {
            let values = elements.iter().map(|element| json::parse(element));
            values.collect::<Result<_, _>>().map_err(parse_failure)
        }
    }
}

/// Returns the previous assignment if its limits were the same.
fn earlier(ctx: &BatchContext<'_>, limits: BatchLimits) -> HashMap<String, Vec<Slot>> {
    let Some(source) = (ctx.previous)(ASSIGNMENT) else {
        return HashMap::new();
    };
    let read = source
        .open()
        .map(|file| serde_json::from_reader::<_, Assignment>(BufReader::new(file)));
    match read {
        Ok(Ok(old)) if old.size == limits.questions && old.max_elements == limits.elements => old
            .questions
            .into_iter()
            .map(|(digest, slots)| {
                let slots = slots
                    .into_iter()
                    .map(|(batch, elements)| Slot { batch, elements })
                    .collect();
                (digest, slots)
            })
            .collect(),
        _ => HashMap::new(),
    }
}

/// Returns the records of each batch, in their order.
fn elements_by_batch(spots: &[SplitRecord], slots: &[Vec<Slot>]) -> BTreeMap<u64, Vec<u32>> {
    let mut filled: Vec<(usize, u64)> = vec![(0, 0); slots.len()];
    let mut batches: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (index, spot) in spots.iter().enumerate() {
        let slots = &slots[spot.question as usize];
        let (slot, used) = &mut filled[spot.question as usize];
        if *used == slots[*slot].elements {
            *slot += 1;
            *used = 0;
        }
        *used += 1;
        batches
            .entry(slots[*slot].batch)
            .or_default()
            .push(index as u32);
    }
    batches
}

/// A batch with its records.
struct SplitBatch<'a> {
    number: u64,
    elements: &'a [u32],
}

fn write_batch(
    ctx: &BatchContext<'_>,
    out: &str,
    batch: &SplitBatch<'_>,
    spots: &[SplitRecord],
    reader: &mut RecordReader<'_>,
    question: Option<&mut Limited<'_>>,
) -> Result<(), Outcome> {
    let elements = batch.elements;
    let name = batch.number.to_string();
    let failed = |error: io::Error| output_failure(&format!("{out} {name}"), error);
    let mut sink = ctx.outputs.create(out, Some(&name)).map_err(failed)?;
    // Positions in this batch by question, in order of first appearance.
    let mut asked: Vec<Vec<usize>> = Vec::new();
    let mut first_elements: Vec<String> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    sink.write_all(b"{\"elements\":[\n").map_err(failed)?;
    for (position, &index) in elements.iter().enumerate() {
        let spot = &spots[index as usize];
        let text = reader.read(spot.place)?;
        match places.get(&spot.question) {
            Some(&place) => asked[place].push(position),
            None => {
                let element = String::from_utf8(text.clone()).map_err(parse_failure)?;
                first_elements.push(element);
                places.insert(spot.question, asked.len());
                asked.push(vec![position]);
            }
        }
        sink.write_all(text).map_err(failed)?;
        sink.write_all(if position + 1 < elements.len() {
            b",\n"
        } else {
            b"\n"
        })
        .map_err(failed)?;
    }
    sink.write_all(b"],\"questions\":[\n").map_err(failed)?;
    let questions = questions(&first_elements, question)?;
    for (place, (question, positions)) in questions.iter().zip(&asked).enumerate() {
        let line =
            json!({ "id": format!("q{}", place + 1), "question": question, "elements": positions });
        write!(
            sink,
            "{line}{}",
            if place + 1 < asked.len() { ",\n" } else { "\n" }
        )
        .map_err(failed)?;
    }
    sink.write_all(b"]}\n").map_err(failed)?;
    sink.finish().map_err(failed)
}

fn write_assignment(
    ctx: &BatchContext<'_>,
    limits: BatchLimits,
    digests: &[QuestionDigest],
    slots: &[Vec<Slot>],
) -> Result<(), Outcome> {
    let questions = digests.iter().zip(slots).map(|(question, slots)| {
        (
            question.value.hex(),
            slots
                .iter()
                .map(|slot| (slot.batch, slot.elements))
                .collect(),
        )
    });
    let assignment = Assignment {
        size: limits.questions,
        max_elements: limits.elements,
        questions: questions.collect(),
    };
    let failed = |error: io::Error| output_failure(ASSIGNMENT, error);
    let mut sink = ctx.outputs.create(ASSIGNMENT, None).map_err(failed)?;
    serde_json::to_writer_pretty(&mut sink, &assignment).map_err(|error| failed(error.into()))?;
    sink.write_all(b"\n").map_err(failed)?;
    sink.finish().map_err(failed)
}
