//! The log of calls of agents: a call is recorded before it is sent, with the exact bytes of request and answer beside the record.
//!
//! `.milepost/calls/RUN.jsonl` has two lines for each call (see [`super::checksummed`]): the request, durable before it is sent, and the
//! response. `.milepost/calls/RUN/N.request` and `N.answer` contain the bytes, without keys.

use super::checksummed::{ChecksummedLog, files, lines};
use crate::store::disk::{Disk, DiskError};
use crate::store::layout::Layout;
use crate::store::read;
use jiff::Timestamp;
use milepost_core::model::batched::CallId;
use milepost_core::model::call::{CallResponse, SentCall, Spent};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallLine {
    Sent(u64, Timestamp, Box<SentCall>),
    #[serde(rename = "heard")]
    Received(u64, Timestamp, Box<CallResponse>),
    /// Like `Sent`, for a call that an earlier run sent in a provider batch and that continues as one of this run.
    TakenOver(u64, Timestamp, Box<SentCall>, CallId),
    /// Like `Received`, for a call that an earlier run sent in a provider batch.
    #[serde(rename = "heard_late")]
    ReceivedLate(CallId, Timestamp, Box<CallResponse>),
    /// The answer was judged, and kept if it was valid.
    Used(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// The run that sent it.
    pub run: String,
    /// The number of the call in its run, from 1.
    pub number: u64,
    /// The time at which it was sent, in UTC.
    pub when: Timestamp,
    pub sent: SentCall,
    /// The response; `None` if the run ended before it.
    pub response: Option<CallResponse>,
    /// Whether the answer was judged, of a call in a batch.
    pub(crate) used: bool,
    /// The call of a later run that this one continues as.
    pub(crate) taken_over: Option<CallId>,
}

/// The log of the calls of one run.
pub struct CallLog {
    disk: Disk,
    folder: PathBuf,
    lines: ChecksummedLog,
    count: u64,
}

/// A call that could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum CallLogError {
    #[error("a call of an agent cannot be recorded: {0}")]
    Disk(#[from] DiskError),
    /// It is not JSON.
    #[error("a call of an agent cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl CallLog {
    /// Creates an empty log for a run.
    pub fn new(disk: &Disk, layout: &Layout, run: &str) -> Self {
        let folder = layout.calls();
        Self {
            disk: disk.private(),
            lines: ChecksummedLog::new(&disk.private(), folder.join(format!("{run}.jsonl"))),
            folder: folder.join(run),
            count: 0,
        }
    }

    /// Records durably that a call is about to be sent, and returns its number.
    ///
    /// # Errors
    /// Fails if it cannot be recorded; then it must not be sent.
    pub fn sent(
        &mut self,
        now: Timestamp,
        sent: &SentCall,
        body: &[u8],
    ) -> Result<u64, CallLogError> {
        let number = self.count + 1;
        self.keep(number, "request", body)?;
        let line = CallLine::Sent(number, now, Box::new(sent.clone()));
        self.lines.append(&serde_json::to_string(&line)?)?;
        self.count = number;
        Ok(number)
    }

    /// Records the response to a call durably.
    ///
    /// # Errors
    /// Fails if it cannot be recorded.
    pub fn received(
        &mut self,
        now: Timestamp,
        number: u64,
        response: &CallResponse,
        raw: &[u8],
    ) -> Result<(), CallLogError> {
        self.keep(number, "answer", raw)?;
        let line = CallLine::Received(number, now, Box::new(response.clone()));
        self.lines.append(&serde_json::to_string(&line)?)?;
        Ok(())
    }

    /// Records durably that a call of an earlier run continues in this run, and returns its number.
    ///
    /// # Errors
    /// Fails if it cannot be recorded.
    pub fn taken_over(
        &mut self,
        now: Timestamp,
        earlier: &CallId,
        sent: &SentCall,
        body: &[u8],
    ) -> Result<u64, CallLogError> {
        let number = self.count + 1;
        self.keep(number, "request", body)?;
        let line = CallLine::TakenOver(number, now, Box::new(sent.clone()), earlier.clone());
        self.lines.append(&serde_json::to_string(&line)?)?;
        self.count = number;
        Ok(number)
    }

    /// Durably records the response to a call of an earlier run.
    ///
    /// # Errors
    /// Fails if it cannot be recorded.
    pub fn received_late(
        &mut self,
        now: Timestamp,
        earlier: &CallId,
        response: &CallResponse,
        raw: &[u8],
    ) -> Result<(), CallLogError> {
        let folder = self.folder.with_file_name(&earlier.run);
        self.keep_in(&folder, earlier.number, "answer", raw)?;
        let line = CallLine::ReceivedLate(earlier.clone(), now, Box::new(response.clone()));
        self.lines.append(&serde_json::to_string(&line)?)?;
        Ok(())
    }

    /// Records durably that the answer of a call was checked.
    ///
    /// # Errors
    /// Fails if it cannot be recorded.
    pub fn used(&mut self, number: u64) -> Result<(), CallLogError> {
        self.lines
            .append(&serde_json::to_string(&CallLine::Used(number))?)?;
        Ok(())
    }

    fn keep(&self, number: u64, what: &str, bytes: &[u8]) -> Result<(), DiskError> {
        self.keep_in(&self.folder, number, what, bytes)
    }

    fn keep_in(
        &self,
        folder: &Path,
        number: u64,
        what: &str,
        bytes: &[u8],
    ) -> Result<(), DiskError> {
        self.disk.create_dir_all(folder)?;
        let path = folder.join(format!("{number:06}.{what}"));
        let mut file = self.disk.create(&path)?;
        file.write_bytes(bytes)?;
        file.flush_data()
    }
}

/// Returns all recorded calls in a folder, in the order of runs and numbers. A call that continued in a later run counts as a call
/// of that run.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn read(folder: &Path) -> std::io::Result<Vec<CallRecord>> {
    read_some(folder, &|_| true)
}

/// Returns the selected calls in a folder, in the order of runs and numbers.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn read_some(
    folder: &Path,
    wanted: &dyn Fn(&SentCall) -> bool,
) -> std::io::Result<Vec<CallRecord>> {
    let (all, _) = read_all(folder, wanted)?;
    let all = all.into_values();
    Ok(all.filter(|call| call.taken_over.is_none()).collect())
}

/// A record of a call that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableCall {
    pub path: PathBuf,
    /// The number of its line, from 1; 0 if a later version wrote it.
    pub line: usize,
}

impl std::fmt::Display for UnreadableCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match self.line {
            0 => write!(f, "{path}: a newer Milepost wrote a record of a call"),
            line => write!(f, "{path}, line {line}: the record of a call is damaged"),
        }
    }
}

/// Returns the selected calls, including calls that continue as others, and the records that cannot be read.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn read_all(
    folder: &Path,
    wanted: &dyn Fn(&SentCall) -> bool,
) -> std::io::Result<(BTreeMap<CallId, CallRecord>, Vec<UnreadableCall>)> {
    read_files(files(folder)?, &|path| read::bytes(path), wanted, true)
}

/// The state of a file of calls, to see whether it changed: path, size and time of change.
pub type CallFileStamp = (PathBuf, u64, SystemTime);

/// Returns the state of the files of calls in a folder.
///
/// # Errors
/// Fails if one cannot be read.
pub fn stamps(folder: &Path) -> std::io::Result<Vec<CallFileStamp>> {
    let stamp = |path: PathBuf| {
        let found = path.metadata()?;
        Ok((path, found.len(), found.modified()?))
    };
    files(folder)?.into_iter().map(stamp).collect()
}

/// Returns all calls in a folder without the texts of their answers, in the order of runs and numbers, and the records that cannot
/// be read.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn read_without_text(folder: &Path) -> std::io::Result<(Vec<CallRecord>, Vec<UnreadableCall>)> {
    let (all, unreadable) =
        read_files(files(folder)?, &|path| read::bytes(path), &|_| true, false)?;
    let all = all.into_values();
    let calls = all.filter(|call| call.taken_over.is_none()).collect();
    Ok((calls, unreadable))
}

/// Returns the selected calls in files, including calls that continue as others, and the records that cannot be read. `load` reads
/// a file.
pub(super) fn read_files(
    paths: Vec<PathBuf>,
    load: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    wanted: &dyn Fn(&SentCall) -> bool,
    keeps_text: bool,
) -> std::io::Result<(BTreeMap<CallId, CallRecord>, Vec<UnreadableCall>)> {
    let kept = |mut response: Box<CallResponse>| {
        if !keeps_text {
            (response.text, response.structured) = (None, None);
        }
        *response
    };
    let mut calls: BTreeMap<CallId, CallRecord> = BTreeMap::new();
    let mut unreadable = Vec::new();
    // If the clock was set back, the name of a later run may sort before an earlier one, so apply references between runs last.
    let (mut taken, mut late) = (Vec::new(), Vec::new());
    for path in paths {
        let run = path.file_stem().unwrap_or_default();
        let run = run.to_string_lossy().into_owned();
        let which = |number| CallId {
            run: run.clone(),
            number,
        };
        let bytes = load(&path)?;
        let at = |line| UnreadableCall {
            path: path.clone(),
            line,
        };
        for line in lines(&bytes) {
            let line = match line {
                Ok(line) => line,
                Err(number) => {
                    unreadable.push(at(number));
                    continue;
                }
            };
            let (number, when, sent) = match serde_json::from_str::<CallLine>(line) {
                Ok(CallLine::Sent(number, when, sent)) => (number, when, sent),
                Ok(CallLine::TakenOver(number, when, sent, earlier)) => {
                    taken.push((earlier, which(number)));
                    (number, when, sent)
                }
                Ok(CallLine::Received(number, _, response)) => {
                    if let Some(call) = calls.get_mut(&which(number)) {
                        call.response = Some(kept(response));
                    }
                    continue;
                }
                Ok(CallLine::ReceivedLate(earlier, _, response)) => {
                    late.push((earlier, kept(response)));
                    continue;
                }
                Ok(CallLine::Used(number)) => {
                    if let Some(call) = calls.get_mut(&which(number)) {
                        call.used = true;
                    }
                    continue;
                }
                Err(_) => {
                    unreadable.push(at(0));
                    continue;
                }
            };
            if !wanted(&sent) {
                continue;
            }
            let call = CallRecord {
                run: run.clone(),
                number,
                when,
                sent: *sent,
                response: None,
                used: false,
                taken_over: None,
            };
            calls.insert(which(number), call);
        }
    }
    for (earlier, next) in taken {
        if let Some(call) = calls.get_mut(&earlier) {
            call.taken_over = Some(next);
        }
    }
    for (earlier, response) in late {
        if let Some(call) = calls.get_mut(&earlier) {
            call.response = Some(response);
        }
    }
    Ok((calls, unreadable))
}

/// The spending of a workspace that is not known.
#[derive(Debug, thiserror::Error)]
pub enum SpentError {
    /// A file cannot be read.
    #[error("cannot read {folder}: {source}", folder = .folder.display())]
    Read {
        /// The folder of calls.
        folder: PathBuf,
        source: std::io::Error,
    },
    /// A record cannot be read, so the calls may have cost more than the other records say.
    #[error(
        "{0}: what this workspace has spent is unknown, and it has a limit. Restore the file from a copy; or remove the line, and the call no longer counts"
    )]
    Unreadable(UnreadableCall),
}

/// Returns the cost of the calls of a workspace, except those of one run. A call without a response counts with the reserved amount.
///
/// # Errors
/// Fails if a file or a record cannot be read.
pub fn spent(layout: &Layout, but: &str) -> Result<Spent, SpentError> {
    let folder = layout.calls();
    let (calls, unreadable) =
        read_without_text(&folder).map_err(|source| SpentError::Read { folder, source })?;
    if let Some(first) = unreadable.into_iter().next() {
        return Err(SpentError::Unreadable(first));
    }
    let mut spent = Spent::default();
    for call in calls.iter().filter(|call| call.run != but) {
        spent += Spent::of(&call.sent, call.response.as_ref());
    }
    Ok(spent)
}

/// Returns the cost of the calls of a workspace by stage, and the records that cannot be read. A call without a response counts
/// with the reserved amount.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn spent_by_stage(
    layout: &Layout,
) -> std::io::Result<(BTreeMap<String, Spent>, Vec<UnreadableCall>)> {
    let (calls, unreadable) = read_without_text(&layout.calls())?;
    Ok((by_stage(&calls), unreadable))
}

/// Returns the cost of calls by stage. A call without a response counts with the reserved amount.
pub fn by_stage(calls: &[CallRecord]) -> BTreeMap<String, Spent> {
    let mut stages: BTreeMap<String, Spent> = BTreeMap::new();
    for call in calls {
        *stages.entry(call.sent.stage.clone()).or_default() +=
            Spent::of(&call.sent, call.response.as_ref());
    }
    stages
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read what was kept")]
pub(super) mod tests {
    use super::*;
    use milepost_core::base::digest::Digest;
    use milepost_core::model::money::NanoUsd;
    use milepost_core::model::usage::Usage;

    pub(crate) fn sent(reserved: u64) -> SentCall {
        SentCall {
            stage: "ask".to_owned(),
            batch: "batch_1".to_owned(),
            attempt: 1,
            agent: "api".to_owned(),
            provider: "openai gpt".to_owned(),
            model: "gpt".to_owned(),
            asked: Digest::of("asked"),
            request: Digest::of("{}"),
            questions: 1,
            likely_input: 10,
            most_input: 0,
            most_output: 20,
            reserved: Some(NanoUsd(reserved)),
            batched: false,
        }
    }

    pub(crate) fn response(cost: u64) -> CallResponse {
        CallResponse {
            outcome: "answered".to_owned(),
            message: None,
            usage: Usage {
                input: 7,
                output: 3,
                ..Usage::default()
            },
            cost: Some(NanoUsd(cost)),
            estimated: None,
            served: None,
            request_id: None,
            text: Some("[]".to_owned()),
            structured: None,
            stop: Some("end".to_owned()),
            raw: Digest::of("raw"),
            took_ms: 1,
        }
    }

    #[test]
    fn what_was_sent_counts_whatever_was_heard() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        assert_eq!(spent(&layout, "").unwrap(), Spent::default());
        let now = Timestamp::from_second(1).unwrap();
        let mut log = CallLog::new(&Disk::real(), &layout, "01A");
        assert_eq!(log.sent(now, &sent(100), b"first").unwrap(), 1);
        assert_eq!(log.sent(now, &sent(100), b"second").unwrap(), 2);
        log.received(now, 1, &response(30), b"raw").unwrap();
        let call = |number, response| CallRecord {
            run: "01A".to_owned(),
            number,
            when: now,
            sent: sent(100),
            response,
            used: false,
            taken_over: None,
        };
        let all = [call(1, Some(response(30))), call(2, None)];
        assert_eq!(read(&layout.calls()).unwrap(), all);
        assert_eq!(read_some(&layout.calls(), &|_| false).unwrap(), []);
        // The run was killed while the second was under way: it may have cost all that was reserved.
        let reserved = Usage {
            input: sent(100).likely_input,
            output: sent(100).most_output,
            ..Usage::NONE
        };
        let whole = Spent {
            calls: 2,
            usage: response(30).usage + reserved,
            cost: NanoUsd(130),
            took_ms: 1,
            unpriced: 0,
            estimated: 1,
        };
        assert_eq!(spent(&layout, "01B").unwrap(), whole);
        let by_stage = BTreeMap::from([("ask".to_owned(), whole)]);
        assert_eq!(spent_by_stage(&layout).unwrap(), (by_stage, vec![]));
        assert_eq!(spent(&layout, "01A").unwrap(), Spent::default());
        let kept = |name: &str| std::fs::read(layout.calls().join("01A").join(name)).unwrap();
        assert_eq!(kept("000002.request"), b"second");
        assert_eq!(kept("000001.answer"), b"raw");
        // A damaged record is named, and nothing is known of the sum. A torn one was never more than its call.
        let path = layout.calls().join("01A.jsonl");
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[70] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let expected = UnreadableCall {
            path: path.clone(),
            line: 1,
        };
        assert_eq!(
            spent_by_stage(&layout).unwrap().1,
            std::slice::from_ref(&expected)
        );
        let refused = spent(&layout, "01B").unwrap_err().to_string();
        assert!(refused.starts_with(&expected.to_string()), "{refused}");
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        assert_eq!(spent(&layout, "01B").unwrap().cost, NanoUsd(200));
    }
}
