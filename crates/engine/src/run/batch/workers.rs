//! The threads that run batches: selects the next batch, and reports its events.

use crate::run::batch::attempt::run;
use crate::run::batch::events::{AtOnce, Message, StageThreads, events};
use crate::run::batch::stage_context::AttemptResult;
use milepost_core::base::in_order::no_thread as thread_errors;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::policy::{Concurrency, MaxFailures};
use milepost_core::model::stage::Stage;
use milepost_core::plan::expand::BatchItem;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::clock::Stopwatch;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The stack of a thread, for programs that are as deep as they may be.
pub(super) const STACK: usize = 4 << 20;

/// Runs one batch after another, as one of `workers` threads.
pub(crate) fn work(threads: StageThreads<'_>, sender: &Sender<Message>, workers: usize) {
    while let Some(index) = next(threads) {
        if !run_one(threads, sender, workers, index) {
            return;
        }
    }
}

/// Runs one batch on this thread, one of `workers`. Returns false if nothing receives its result.
pub(crate) fn run_one(
    threads: StageThreads<'_>,
    sender: &Sender<Message>,
    workers: usize,
    index: usize,
) -> bool {
    let stage_ctx = threads.stage_ctx;
    let found = &threads.scan.batches[index];
    // A batch without its inputs fails at once, unless it has a placeholder.
    let is_tried = found.decision.is_ok() || stage_ctx.stage.policy.placeholder.is_some();
    if is_tried && sender.send(Message::Begun { index }).is_err() {
        return false;
    }
    let begun = Stopwatch::start();
    let telling = events(threads, sender, workers, index);
    let previous = (threads.order.previous)(&found.batch.key);
    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(stage_ctx, found, index as u64 + 1, &telling, &previous)
    }));
    let tried = tried.unwrap_or_else(|panic| AttemptResult {
        result: Err(match thread_errors::of_panic(&*panic) {
            Some(message) => Outcome::new(OutcomeKind::Memory, message),
            None => Outcome::new(
                OutcomeKind::Parse,
                "a step panicked: this is a defect of Milepost, please report it",
            ),
        }),
        scratch: None,
        log: None,
    });
    let took = begun.elapsed();
    report(threads, sender, index, tried, took)
}

/// Reports the result of a batch. Returns false if nothing receives it.
pub(crate) fn report(
    threads: StageThreads<'_>,
    sender: &Sender<Message>,
    index: usize,
    tried: AttemptResult,
    took: Duration,
) -> bool {
    let (scan, ready) = (threads.scan, threads.ready);
    // This happens before the dispatcher knows: with one worker, the batch after a failed one must not start.
    if has_failed(&tried) {
        let mut queue = threads.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.failed += 1;
        // Files that cannot be used, and requests that were sent before, are all reported, and stop no other batch.
        let found = &scan.batches[index];
        let is_sent = matches!(&found.decision, Err(missed) if missed.accepted.is_some());
        queue.closed |=
            found.batch.refused.is_none() && !is_sent && !may_continue(threads, queue.failed);
    }
    let tried = Box::new(tried);
    let is_received = sender.send(Message::Done { index, tried, took }).is_ok();
    let mut queue = threads.queue.lock().unwrap_or_else(PoisonError::into_inner);
    queue.active.retain(|&active| active != index);
    drop(queue);
    ready.notify_all();
    is_received
}

fn has_failed(tried: &AttemptResult) -> bool {
    match &tried.result {
        Ok(produced) => produced.placeholder.is_some() || !produced.failed.is_empty(),
        // Without budget or without its agent, no further batch starts: its earlier steps would run in vain.
        Err(outcome) => {
            let stops = matches!(outcome.kind, OutcomeKind::Budget | OutcomeKind::Unreachable);
            stops || !outcome.kind.waits()
        }
    }
}

/// Returns true if further batches start after this many failures.
fn may_continue(threads: StageThreads<'_>, failed: u64) -> bool {
    let policy = &threads.stage_ctx.stage.policy;
    let too_many = match policy.max_failures {
        Some(MaxFailures::Count(most)) => failed >= most,
        Some(MaxFailures::Share(share)) => failed as f64 > share * threads.scan.count() as f64,
        None => false,
    };
    (threads.order.keep_going || policy.tolerates_failures()) && !too_many
}

/// Waits for the next batch that may run; `None` if there are no more.
fn next(threads: StageThreads<'_>) -> Option<usize> {
    let StageThreads {
        stage_ctx,
        scan,
        order,
        queue,
        ready,
    } = threads;
    let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if state.closed || state.waiting.is_empty() || stage_ctx.stop.stopping() {
            return None;
        }
        let place = match &order.at_once {
            AtOnce::Batches(_) => Some(0),
            AtOnce::Values(name, most) => {
                let value = |index: usize| value_of(scan, index, name);
                let active: BTreeSet<String> =
                    state.active.iter().map(|&index| value(index)).collect();
                state
                    .waiting
                    .iter()
                    .position(|&index| active.contains(&value(index)) || active.len() < *most)
            }
        };
        if let Some(index) = place.and_then(|place| state.waiting.remove(place)) {
            state.active.push(index);
            return Some(index);
        }
        state = ready.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn value_of(scan: &StageScan, index: usize, name: &str) -> String {
    let items = &scan.batches[index].batch.items;
    let item = items
        .iter()
        .find(|(each, _)| each == name)
        .map(|(_, item)| item);
    match item {
        Some(BatchItem::Value(value)) => value.to_string(),
        Some(BatchItem::File(file)) => file.to_string(),
        None => String::new(),
    }
}

/// Maximum default number of threads of a stage: more do not speed up a batch that mostly reads and writes.
const THREADS: usize = 8;

/// Returns how many threads the batches of a stage may use together, by `--jobs` and the processors.
pub(crate) fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.min(THREADS)
    })
}

/// How many batches run at once in a stage without `concurrency` whose agent uses provider batches. They only wait, and each is
/// one request of the batch.
const IN_BATCHES: usize = 256;

/// Returns how many batches run at once, by the stage's declaration and `--jobs`.
///
/// # Errors
/// When a template does not result in a number.
pub(crate) fn at_once(
    stage: &Stage,
    base: &Map<String, Value>,
    jobs: Option<usize>,
    in_batches: bool,
) -> Result<AtOnce, String> {
    match &stage.policy.concurrency {
        None if in_batches => Ok(AtOnce::Batches(jobs.unwrap_or(0).max(IN_BATCHES))),
        None => Ok(AtOnce::Batches(jobs.unwrap_or(1))),
        Some(Concurrency::Batches(count)) => {
            Ok(AtOnce::Batches(count.number(base)?.max(1) as usize))
        }
        Some(Concurrency::Values(name, count)) => Ok(AtOnce::Values(
            name.clone(),
            count.number(base)?.max(1) as usize,
        )),
    }
}
