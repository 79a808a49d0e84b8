//! Batches of calls at providers: each recorded before it is submitted, and its id before anything else is done with it.
//!
//! `.milepost/batches/RUN.jsonl` has a line (see [`super::sealed`]) for a batch that is about to be submitted, one for the id that the
//! provider gave it, and one if it was not made. What became of its requests stands with the calls ([`super::calls`]).

use super::calls::{Call, CallLogError, read_all};
use super::disk::Disk;
use super::layout::Layout;
use super::sealed::{Sealed, files, whole_lines};
use crate::model::batched::{Left, LeftBatch, LeftCall, Submitting, Which};
use crate::model::call::ANSWERED;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// About to be submitted.
    Submitting(u64, Timestamp, Box<Submitting>),
    /// The provider's id, or those of which it is one.
    Submitted(Which, Vec<String>),
    /// It was not made, or cannot be found: nothing more will be heard of it.
    Over(Which),
}

/// The batches of one run.
pub struct BatchLog {
    lines: Sealed,
    run: String,
    count: u64,
}

impl BatchLog {
    /// The batches of a run, of which there is none yet.
    pub fn new(disk: &Disk, layout: &Layout, run: &str) -> Self {
        Self {
            lines: Sealed::new(disk, layout.batches().join(format!("{run}.jsonl"))),
            run: run.to_owned(),
            count: 0,
        }
    }

    /// Records a batch that is about to be submitted, durably.
    ///
    /// # Errors
    /// When it could not be recorded: then it must not be submitted.
    pub fn submitting(
        &mut self,
        now: Timestamp,
        batch: &Submitting,
    ) -> Result<Which, CallLogError> {
        let number = self.count + 1;
        self.append(&Line::Submitting(number, now, Box::new(batch.clone())))?;
        self.count = number;
        let run = self.run.clone();
        Ok(Which { run, number })
    }

    /// Records the provider's id of a batch, or those of which it is one, durably.
    ///
    /// # Errors
    /// When it could not be recorded.
    pub fn submitted(&mut self, batch: &Which, ids: &[String]) -> Result<(), CallLogError> {
        self.append(&Line::Submitted(batch.clone(), ids.to_vec()))
    }

    /// Records that nothing more will be heard of a batch, durably.
    ///
    /// # Errors
    /// When it could not be recorded.
    pub fn over(&mut self, batch: &Which) -> Result<(), CallLogError> {
        self.append(&Line::Over(batch.clone()))
    }

    fn append(&mut self, line: &Line) -> Result<(), CallLogError> {
        self.lines.append(&serde_json::to_string(line)?)?;
        Ok(())
    }
}

/// A batch, as it is recorded.
struct Batch {
    when: Timestamp,
    submitting: Submitting,
    ids: Vec<String>,
    is_over: bool,
}

/// What other runs than this one left: of every agent and place (see [`Submitting`]) the batches that are not done and the answers
/// that nobody used; and the calls that were recorded and never submitted.
///
/// # Errors
/// When a file cannot be read.
pub fn left(
    layout: &Layout,
    but: &str,
) -> std::io::Result<(BTreeMap<(String, String), Left>, Vec<LeftCall>)> {
    let batches = read(layout)?;
    if batches.is_empty() && files(&layout.calls())?.is_empty() {
        return Ok((BTreeMap::new(), Vec::new()));
    }
    let calls = read_all(&layout.calls())?;
    let mut all: BTreeMap<(String, String), Left> = BTreeMap::new();
    let mut submitted: BTreeSet<Which> = BTreeSet::new();
    for (which, batch) in batches {
        let Submitting { agent, place, .. } = &batch.submitting;
        let left = all.entry((agent.clone(), place.clone())).or_default();
        left.known.extend(batch.ids.iter().cloned());
        let mut open = Vec::new();
        for (id, number) in &batch.submitting.requests {
            let first = Which {
                run: which.run.clone(),
                number: *number,
            };
            submitted.insert(first.clone());
            let Some(call) = last(&calls, first) else {
                continue;
            };
            submitted.insert(which_of(call));
            if call.run == but {
                continue;
            }
            match &call.heard {
                Some(heard) if heard.outcome == ANSWERED && !call.used => {
                    left.answered.push(left_call(call));
                }
                None if !batch.is_over => open.push((id.clone(), left_call(call))),
                _ => {}
            }
        }
        if which.run != but && !open.is_empty() {
            left.batches.push(LeftBatch {
                when: batch.when,
                size: batch.submitting.requests.len() as u64,
                ids: batch.ids,
                calls: open,
                batch: which,
            });
        }
    }
    let never = calls.values().filter(|call| {
        call.sent.batched
            && call.heard.is_none()
            && call.run != but
            && call.taken_over.is_none()
            && !submitted.contains(&which_of(call))
    });
    Ok((all, never.map(left_call).collect()))
}

/// How many batches are not done.
///
/// # Errors
/// When a file cannot be read.
pub fn open(layout: &Layout) -> std::io::Result<u64> {
    let left = left(layout, "")?.0;
    Ok(left.values().map(|left| left.batches.len() as u64).sum())
}

fn read(layout: &Layout) -> std::io::Result<BTreeMap<Which, Batch>> {
    let mut batches: BTreeMap<Which, Batch> = BTreeMap::new();
    for path in files(&layout.batches())? {
        let run = path.file_stem().unwrap_or_default().to_string_lossy();
        let bytes = std::fs::read(&path)?;
        for line in whole_lines(&bytes) {
            match serde_json::from_str::<Line>(line) {
                Ok(Line::Submitting(number, when, submitting)) => {
                    let which = Which {
                        run: run.clone().into_owned(),
                        number,
                    };
                    let batch = Batch {
                        when,
                        submitting: *submitting,
                        ids: Vec::new(),
                        is_over: false,
                    };
                    batches.insert(which, batch);
                }
                Ok(Line::Submitted(which, ids)) => {
                    if let Some(batch) = batches.get_mut(&which) {
                        batch.ids = ids;
                    }
                }
                Ok(Line::Over(which)) => {
                    if let Some(batch) = batches.get_mut(&which) {
                        batch.is_over = true;
                    }
                }
                // What a later version writes is no batch of this one.
                Err(_) => {}
            }
        }
    }
    Ok(batches)
}

/// The call that a call goes on as, over all runs that took it over.
fn last(calls: &BTreeMap<Which, Call>, first: Which) -> Option<&Call> {
    let mut call = calls.get(&first)?;
    // No more runs than calls: lines that lead in a circle end all the same.
    for _ in 0..calls.len() {
        match call.taken_over.as_ref().and_then(|next| calls.get(next)) {
            Some(next) => call = next,
            None => break,
        }
    }
    Some(call)
}

fn which_of(call: &Call) -> Which {
    Which {
        run: call.run.clone(),
        number: call.number,
    }
}

fn left_call(call: &Call) -> LeftCall {
    LeftCall {
        call: which_of(call),
        sent: call.sent.clone(),
        heard: call.heard.clone(),
    }
}
