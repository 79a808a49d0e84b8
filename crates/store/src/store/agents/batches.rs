//! The log of provider batches: a batch is recorded before it is submitted, and its id before anything else is done with it.
//!
//! `.milepost/batches/RUN.jsonl` has a line (see [`super::checksummed`]) for a batch before it is submitted, one with the
//! provider's id, and one when it is closed. The results of its requests are in the log of calls ([`super::calls`]).

use super::calls::{CallLogError, CallRecord, read_all};
use super::checksummed::{ChecksummedLog, files, whole_lines};
use crate::store::disk::Disk;
use crate::store::layout::Layout;
use crate::store::read;
use jiff::Timestamp;
use milepost_core::model::batched::{CallId, Left, LeftBatch, LeftCall, Submitting};
use milepost_core::model::call::ANSWERED;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BatchLine {
    /// About to be submitted.
    Submitting(u64, Timestamp, Box<Submitting>),
    /// The provider's id, or the candidates for it.
    Submitted(CallId, Vec<String>),
    /// All results were received, or the batch was not created or cannot be found: no more results will come.
    Over(CallId),
}

/// The log of the provider batches of one run.
pub struct BatchLog {
    lines: ChecksummedLog,
    run: String,
    count: u64,
}

impl BatchLog {
    /// Creates an empty log for a run.
    pub fn new(disk: &Disk, layout: &Layout, run: &str) -> Self {
        Self {
            lines: ChecksummedLog::new(
                &disk.private(),
                layout.batches().join(format!("{run}.jsonl")),
            ),
            run: run.to_owned(),
            count: 0,
        }
    }

    /// Records durably that a batch is about to be submitted.
    ///
    /// # Errors
    /// Fails if it cannot be recorded; then it must not be submitted.
    pub fn submitting(
        &mut self,
        now: Timestamp,
        batch: &Submitting,
    ) -> Result<CallId, CallLogError> {
        let number = self.count + 1;
        self.append(&BatchLine::Submitting(number, now, Box::new(batch.clone())))?;
        self.count = number;
        let run = self.run.clone();
        Ok(CallId { run, number })
    }

    /// Records the provider's id of a batch durably, or several ids if any of them may be the batch's.
    ///
    /// # Errors
    /// Fails if it cannot be recorded.
    pub fn submitted(&mut self, batch: &CallId, ids: &[String]) -> Result<(), CallLogError> {
        self.append(&BatchLine::Submitted(batch.clone(), ids.to_vec()))
    }

    /// Records durably that a batch is closed.
    ///
    /// # Errors
    /// Fails if it cannot be recorded.
    pub fn over(&mut self, batch: &CallId) -> Result<(), CallLogError> {
        self.append(&BatchLine::Over(batch.clone()))
    }

    fn append(&mut self, line: &BatchLine) -> Result<(), CallLogError> {
        self.lines.append(&serde_json::to_string(line)?)?;
        Ok(())
    }
}

/// A batch, as it is recorded.
struct SubmittedBatch {
    when: Timestamp,
    submitting: Submitting,
    ids: Vec<String>,
    is_over: bool,
}

/// Returns what other runs left open: the unfinished batches and unused answers of every agent and place (see [`Submitting`]), and
/// the calls that were recorded and never submitted.
///
/// # Errors
/// Fails if a file cannot be read.
#[expect(clippy::type_complexity)]
pub fn left(
    layout: &Layout,
    but: &str,
) -> std::io::Result<(BTreeMap<(String, String), Left>, Vec<LeftCall>)> {
    let batches = read(layout)?;
    let (calls, _) = read_all(&layout.calls(), &|_| true)?;
    let mut all: BTreeMap<(String, String), Left> = BTreeMap::new();
    let mut submitted: BTreeSet<CallId> = BTreeSet::new();
    for (which, batch) in batches {
        let Submitting { agent, place, .. } = &batch.submitting;
        let left = all.entry((agent.clone(), place.clone())).or_default();
        left.known.extend(batch.ids.iter().cloned());
        let mut open = Vec::new();
        for (id, number) in &batch.submitting.requests {
            let first = CallId {
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
            match &call.response {
                Some(response) if response.outcome == ANSWERED && !call.used => {
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
            && call.response.is_none()
            && call.run != but
            && call.taken_over.is_none()
            && !submitted.contains(&which_of(call))
    });
    Ok((all, never.map(left_call).collect()))
}

/// Returns the number of open batches, and the batches that have ended without a record of it.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn standing(layout: &Layout) -> std::io::Result<(u64, Vec<CallId>)> {
    let mut batches = read(layout)?;
    batches.retain(|_, batch| !batch.is_over);
    if batches.is_empty() {
        return Ok((0, Vec::new()));
    }
    let (calls, _) = read_all(&layout.calls(), &|_| true)?;
    let is_heard = |run: &str, number: u64| {
        let run = run.to_owned();
        last(&calls, CallId { run, number }).is_none_or(|call| call.response.is_some())
    };
    let (done, open): (Vec<_>, Vec<_>) = batches.into_iter().partition(|(which, batch)| {
        let mut requests = batch.submitting.requests.iter();
        requests.all(|(_, number)| is_heard(&which.run, *number))
    });
    let done = done.into_iter().map(|(which, _)| which);
    Ok((open.len() as u64, done.collect()))
}

fn read(layout: &Layout) -> std::io::Result<BTreeMap<CallId, SubmittedBatch>> {
    let mut batches: BTreeMap<CallId, SubmittedBatch> = BTreeMap::new();
    for path in files(&layout.batches())? {
        let run = path.file_stem().unwrap_or_default().to_string_lossy();
        let bytes = read::bytes(&path)?;
        for line in whole_lines(&bytes) {
            match serde_json::from_str::<BatchLine>(line) {
                Ok(BatchLine::Submitting(number, when, submitting)) => {
                    let which = CallId {
                        run: run.clone().into_owned(),
                        number,
                    };
                    let batch = SubmittedBatch {
                        when,
                        submitting: *submitting,
                        ids: Vec::new(),
                        is_over: false,
                    };
                    batches.insert(which, batch);
                }
                Ok(BatchLine::Submitted(which, ids)) => {
                    if let Some(batch) = batches.get_mut(&which) {
                        batch.ids = ids;
                    }
                }
                Ok(BatchLine::Over(which)) => {
                    if let Some(batch) = batches.get_mut(&which) {
                        batch.is_over = true;
                    }
                }
                // A later version may have written this line.
                Err(_) => {}
            }
        }
    }
    Ok(batches)
}

/// Returns the call that a call continues as, across all runs that took it over.
fn last(calls: &BTreeMap<CallId, CallRecord>, first: CallId) -> Option<&CallRecord> {
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

fn which_of(call: &CallRecord) -> CallId {
    CallId {
        run: call.run.clone(),
        number: call.number,
    }
}

fn left_call(call: &CallRecord) -> LeftCall {
    LeftCall {
        call: which_of(call),
        sent: call.sent.clone(),
        response: call.response.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::agents::calls::{CallLog, read, spent};
    use milepost_core::base::digest::Digest;
    use milepost_core::model::call::CallResponse;
    use milepost_core::model::money::NanoUsd;

    const KEY: (&str, &str) = ("api", "openai");

    fn sent(prompt: &str) -> milepost_core::model::call::SentCall {
        milepost_core::model::call::SentCall {
            stage: "ask".to_owned(),
            batch: prompt.to_owned(),
            attempt: 1,
            agent: KEY.0.to_owned(),
            provider: "openai gpt".to_owned(),
            model: "gpt".to_owned(),
            asked: Digest::of(prompt),
            request: Digest::of(prompt),
            questions: 1,
            likely_input: 10,
            most_input: 0,
            most_output: 20,
            reserved: Some(NanoUsd(100)),
            batched: true,
        }
    }

    fn response() -> CallResponse {
        CallResponse {
            outcome: ANSWERED.to_owned(),
            message: None,
            cost: Some(NanoUsd(30)),
            text: Some("yes".to_owned()),
            stop: Some("end".to_owned()),
            ..CallResponse::never_sent()
        }
    }

    fn which(run: &str, number: u64) -> CallId {
        let run = run.to_owned();
        CallId { run, number }
    }

    /// Returns the provider batches of the agent `one`: batches with their runs and calls, answered calls, and calls that were
    /// never submitted.
    #[expect(clippy::type_complexity)]
    fn left_of(layout: &Layout) -> (Vec<(Vec<String>, Vec<CallId>)>, Vec<CallId>, Vec<CallId>) {
        let (all, never) = left(layout, "09").unwrap();
        let which = |calls: &[LeftCall]| calls.iter().map(|left| left.call.clone()).collect();
        let Some(left) = all.get(&(KEY.0.to_owned(), KEY.1.to_owned())) else {
            return (Vec::new(), Vec::new(), which(&never));
        };
        let batches = left.batches.iter().map(|left| {
            let calls = left.calls.iter().map(|(_, call)| call.call.clone());
            (left.ids.clone(), calls.collect())
        });
        (batches.collect(), which(&left.answered), which(&never))
    }

    #[test]
    fn each_call_of_a_batch_is_settled_once_whichever_run_hears_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let (disk, now) = (Disk::real(), Timestamp::from_second(1).unwrap());
        // Four calls, three of them in a batch; one result arrives before the run is killed.
        let mut calls = CallLog::new(&disk, &layout, "01");
        let mut batches = BatchLog::new(&disk, &layout, "01");
        for prompt in ["a", "b", "c", "d"] {
            calls.sent(now, &sent(prompt), b"{}").unwrap();
        }
        let submitting = Submitting {
            agent: KEY.0.to_owned(),
            place: KEY.1.to_owned(),
            requests: (1..=3)
                .map(|number| (format!("01-{number}"), number))
                .collect(),
            digest: Digest::of(""),
        };
        let batch = batches.submitting(now, &submitting).unwrap();
        let open = |ids: &[&str]| {
            let ids = ids.iter().map(|&id| id.to_owned()).collect();
            vec![(ids, vec![which("01", 2), which("01", 3)])]
        };
        calls.received(now, 1, &response(), b"yes").unwrap();
        let never = vec![which("01", 4)];
        assert_eq!(left_of(&layout), (open(&[]), vec![which("01", 1)], never));
        batches.submitted(&batch, &["x".to_owned()]).unwrap();
        calls.used(1).unwrap();
        let expected = (open(&["x"]), vec![], vec![which("01", 4)]);
        assert_eq!(left_of(&layout), expected);
        assert_eq!(spent(&layout, "").unwrap().cost, NanoUsd(330));

        // The next run takes one over, receives an unrequested result, and is killed.
        let mut calls = CallLog::new(&disk, &layout, "02");
        let late = |calls: &mut CallLog, number, response: &CallResponse| {
            calls
                .received_late(now, &which("01", number), response, b"")
                .unwrap();
        };
        late(&mut calls, 4, &CallResponse::never_sent());
        let number = calls.taken_over(now, &which("01", 2), &sent("b"), b"{}");
        assert_eq!(number.unwrap(), 1);
        late(&mut calls, 3, &response());
        let open = vec![(vec!["x".to_owned()], vec![which("02", 1)])];
        let answered = vec![which("01", 3)];
        assert_eq!(left_of(&layout), (open, answered.clone(), vec![]));
        assert_eq!(spent(&layout, "").unwrap().cost, NanoUsd(160));
        assert_eq!(standing(&layout).unwrap(), (1, vec![]));

        // The one after it takes over what was taken over.
        let mut calls = CallLog::new(&disk, &layout, "03");
        let next = calls.taken_over(now, &which("02", 1), &sent("b"), b"{}");
        calls
            .received(now, next.unwrap(), &response(), b"yes")
            .unwrap();
        let both = vec![which("03", 1), which("01", 3)];
        assert_eq!(left_of(&layout), (vec![], both, vec![]));
        assert_eq!(standing(&layout).unwrap(), (0, vec![batch.clone()]));
        calls.used(1).unwrap();
        BatchLog::new(&disk, &layout, "03").over(&batch).unwrap();
        assert_eq!(left_of(&layout), (vec![], answered, vec![]));
        assert_eq!(standing(&layout).unwrap(), (0, vec![]));
        let all = spent(&layout, "").unwrap();
        assert_eq!((all.calls, all.cost), (4, NanoUsd(90)));
        let runs: Vec<String> = read(&layout.calls())
            .unwrap()
            .into_iter()
            .map(|call| call.run)
            .collect();
        assert_eq!(runs, ["01", "01", "01", "03"]);
    }
}
