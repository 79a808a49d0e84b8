//! Reads foreign files, and runs jq programs over foreign values, in workers: child processes with limits. A file that overflows the
//! stack or takes all memory ends its worker and fails its batch; the program and all other batches continue.
//!
//! A worker is this program with the argument [`ARGUMENT`]. It serves one request after another, so that a pool of workers
//! costs little, and ends when its standard input does: no worker outlives the program.

mod frames;
mod jq;
mod pipe;
mod pool;
mod serve;
mod work;

pub use jq::JqWorkers;
pub use pool::use_workers;
pub use serve::serve;
pub(crate) use work::{JqValues, PDF_MEMORY, RecordFile, Work};

use super::batch_context::{BatchContext, output_failure, parse_failure};
use super::cancel::CancelToken;
use frames::{Answer, Broken};
use milepost_core::base::size::show_size;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use pool::{WorkerEnd, WorkerPool};
#[cfg(target_os = "linux")]
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::Arc;

/// The argument that makes the program a worker.
pub const ARGUMENT: &str = "worker";

/// The stack of the thread that reads a file.
const STACK: usize = 16 << 20;

/// A request on the standard input of a worker: its length, eight bytes, and its JSON.
#[derive(Serialize, Deserialize)]
struct Request {
    /// The memory that the work may take, in bytes.
    memory: u64,
    /// The processor time that the work may take, in seconds. It holds where the time that the program measures does not: while
    /// that is stopped.
    seconds: Option<u64>,
    work: Work,
}

/// Returns the memory that reading a file may take, in bytes.
pub(crate) fn memory_of(stage: &Stage, default: u64) -> u64 {
    stage.policy.memory.unwrap_or(default)
}

/// Limits the memory of a program that reads foreign files, in bytes. Only Linux can do that to a running process.
pub(crate) fn limit_memory(process: u32, memory: u64) {
    #[cfg(target_os = "linux")]
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let limit = Rlimit {
            current: Some(memory),
            maximum: Some(memory),
        };
        // A process that has ended needs no limit.
        let _ = prlimit(Some(process), Resource::Data, limit);
    }
}

/// Does work in a worker, or on a thread of this process if the program has none, and returns its result. The bytes that it
/// writes go to `sink`, a file of `out`.
///
/// # Errors
/// The failure of the work; the outcomes `memory` and `crash` if its worker ended; `timeout` if the token is cancelled.
pub(crate) fn run<T: DeserializeOwned>(
    ctx: &BatchContext<'_>,
    work: Work,
    out: &str,
    sink: &mut dyn Write,
) -> Result<T, Outcome> {
    perform(work, ctx.stage.policy.memory, ctx.cancel, out, sink)
}

/// Like [`run`], without a stage.
///
/// # Errors
/// The errors of [`run`].
pub(crate) fn perform<T: DeserializeOwned>(
    work: Work,
    memory: Option<u64>,
    cancel: &Arc<CancelToken>,
    out: &str,
    sink: &mut dyn Write,
) -> Result<T, Outcome> {
    let memory = memory.unwrap_or(work.default_memory());
    let request = Request {
        memory,
        seconds: cancel.left().map(|left| left.as_secs()),
        work,
    };
    let result = match pool::pool() {
        Some(pool) => in_worker(pool, cancel, &request, out, sink)?,
        None => {
            let token = Arc::clone(cancel);
            let (result, bytes) = cancel.run_on_thread(move || {
                let mut bytes = Vec::new();
                let result = request.work.perform(&mut bytes, &|| token.check());
                (result, bytes)
            })?;
            sink.write_all(&bytes)
                .map_err(|error| output_failure(out, error))?;
            result?
        }
    };
    serde_json::from_str(&result).map_err(parse_failure)
}

/// Does work in a worker, and returns its result as JSON.
fn in_worker(
    pool: &WorkerPool,
    cancel: &CancelToken,
    request: &Request,
    out: &str,
    sink: &mut dyn Write,
) -> Result<String, Outcome> {
    // The text of a record may have several lines, so the length comes first.
    let mut message = vec![0; size_of::<u64>()];
    serde_json::to_writer(&mut message, request).map_err(parse_failure)?;
    let length = (message.len() - size_of::<u64>()) as u64;
    message[..size_of::<u64>()].copy_from_slice(&length.to_le_bytes());
    loop {
        let mut worker = pool.worker().map_err(|error| {
            let message = format!("no process can be started to read files: {error}");
            Outcome::new(OutcomeKind::Crash, message)
        })?;
        match worker.exchange(cancel, &message, sink) {
            Ok(answer) => {
                pool.keep(worker);
                return match answer {
                    Answer::Done(result) => Ok(result),
                    Answer::Failed(outcome) => Err(outcome),
                };
            }
            Err(Broken::Sink(error)) => {
                worker.end();
                return Err(output_failure(out, error));
            }
            Err(Broken::Worker) => {
                let was_idle = worker.served > 0;
                let end = worker.end();
                if let Err(why) = cancel.check() {
                    let message = format!("{}: {why}", request.work.subject());
                    return Err(Outcome::new(OutcomeKind::Timeout, message));
                }
                // An idle worker ends by itself after a while.
                if was_idle && end.is_regular() {
                    continue;
                }
                return Err(outcome_of(&end, request));
            }
        }
    }
}

/// Returns the outcome of work whose worker ended.
fn outcome_of(end: &WorkerEnd, request: &Request) -> Outcome {
    let subject = request.work.subject();
    if end.lacked_memory() {
        let memory = show_size(request.memory);
        let message = format!(
            "{subject} takes more than {memory} of memory: check what it reads, or raise `memory` under [limits] of the stage"
        );
        return Outcome::new(OutcomeKind::Memory, message);
    }
    if end.took_its_time() {
        let message = format!("{subject} exceeded its time limit");
        return Outcome::new(OutcomeKind::Timeout, message);
    }
    if end.lost_its_file() {
        let message = format!(
            "{subject}: the file was truncated while it was being read: run again after the program that writes it has finished"
        );
        return Outcome::new(OutcomeKind::Crash, message);
    }
    let how = end.description();
    let message = format!("{subject} crashed: {how}");
    let outcome = Outcome::new(OutcomeKind::Crash, message);
    if end.is_from_outside() {
        outcome
    } else {
        outcome.for_good()
    }
}
