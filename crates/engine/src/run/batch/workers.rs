//! The threads that do batches: which one is next, and what its attempt tells.

use crate::run::batch::attempt::{run, token};
use crate::run::batch::stage_context::{AttemptResult, StageContext};
use crate::steps::calls::ProviderBatchUpdate;
use crate::steps::command::Started;
use crate::steps::work::{Told, Watcher};
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::{Heard, Sent};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::policy::{Concurrency, MaxFailures, OnFailure};
use milepost_core::model::stage::Stage;
use milepost_core::plan::expand::BatchItem;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::clock::Stopwatch;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How many at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AtOnce {
    /// Batches.
    Batches(usize),
    /// Values of one `each` name; of each value, all its batches.
    Values(String, usize),
}

/// What a worker tells the dispatcher.
pub(crate) enum Message {
    /// A batch begins.
    Begun {
        /// Its place in the survey.
        index: usize,
    },
    /// It started a program.
    Started {
        /// The batch's place in the survey.
        index: usize,
        /// The program.
        child: Started,
        /// What `MILEPOST_ATTEMPT` is in its environment.
        token: String,
    },
    /// An agent was called.
    Called {
        /// The batch's place in the survey.
        index: usize,
        /// Who asked.
        role: Option<String>,
        /// Which of the run's calls it was.
        number: u64,
        /// What was sent.
        sent: Box<Sent>,
        /// What was heard.
        heard: Box<Heard>,
    },
    /// A provider batch changed its state.
    ProviderBatch(ProviderBatchUpdate),
    /// Something is to be recorded of its way.
    Happened {
        /// The batch's place in the survey.
        index: usize,
        /// The coarse kind.
        kind: EventType,
        /// Who acted.
        role: Option<String>,
        /// What happened.
        event: Box<Event>,
        /// The same in a line.
        summary: String,
    },
    /// A try failed, and another follows.
    Again {
        /// The batch's place in the survey.
        index: usize,
        /// The try that failed, from 1 on.
        failed: u32,
        /// How.
        outcome: Outcome,
        /// How long until the next.
        wait: Duration,
    },
    /// A batch ended.
    Done {
        /// Its place in the survey.
        index: usize,
        /// What came of it.
        tried: Box<AttemptResult>,
        /// How long it took.
        took: Duration,
    },
}

/// Tells the dispatcher what a worker's attempt does.
struct EventSender<'a> {
    redactor: &'a Redactor,
    stage: &'a Stage,
    /// The batch.
    batch: &'a str,
    index: usize,
    /// That of the step at work.
    role: RefCell<Option<String>>,
    token: String,
    sender: &'a Sender<Message>,
    queue: &'a Mutex<Queue>,
    workers: usize,
}

impl Watcher for EventSender<'_> {
    fn told(&self, told: Told<'_>) {
        let (stage, batch) = (self.stage.name.clone(), self.batch.to_owned());
        let name = batch_name(&stage, &batch);
        let (kind, event, summary) = match told {
            Told::Step(step, round) => {
                self.role.replace(step.role.clone());
                if !self.stage.tells_steps() {
                    return;
                }
                let out = step.out.clone();
                let summary = match round {
                    Some(round) => format!("{name}, round {round}: {} begins", step.out),
                    None => format!("{name}: {} begins", step.out),
                };
                let event = Event::StepStarted {
                    stage,
                    batch,
                    out,
                    round,
                };
                (EventType::Invoke, event, summary)
            }
            Told::Refused {
                number,
                valid,
                violations,
            } => {
                let hide = |line: &String| self.redactor.text(line).into_owned();
                let violations: Vec<String> = violations.iter().map(hide).collect();
                let wrong = match violations.len() {
                    1 => "1 violation".to_owned(),
                    many => format!("{many} violations"),
                };
                let summary = format!("{name}, call {number}: {valid} valid answers, {wrong}");
                let event = Event::AnswersRefused {
                    stage,
                    batch,
                    number,
                    valid,
                    violations,
                };
                (EventType::Review, event, summary)
            }
            Told::Judged(round) => {
                let how = if round.right { "right" } else { "not right" };
                let score = round.score.map(|score| format!(", score {score}"));
                let score = score.unwrap_or_default();
                let said = round.summary.as_ref().map(|said| format!(": {said}"));
                let said = said.unwrap_or_default();
                let summary = format!("{name}, round {}: {how}{score}{said}", round.round);
                let event = Event::RoundJudged {
                    stage,
                    batch,
                    round,
                };
                (EventType::Review, event, summary)
            }
            Told::Revises(round, why) => {
                let summary = format!("{name} is revised in round {round}: {why}");
                let event = Event::RoundStarted {
                    stage,
                    batch,
                    round,
                    why: why.to_owned(),
                };
                (EventType::Revision, event, summary)
            }
        };
        let message = Message::Happened {
            index: self.index,
            kind,
            role: self.role.borrow().clone(),
            event: Box::new(event),
            summary,
        };
        let _ = self.sender.send(message);
    }

    fn started(&self, child: &Started) {
        let message = Message::Started {
            index: self.index,
            child: child.clone(),
            token: self.token.clone(),
        };
        // The dispatcher outlives its workers; should it be gone, there is nobody to tell.
        let _ = self.sender.send(message);
    }

    fn called(&self, number: u64, sent: &Sent, heard: &Heard) {
        let message = Message::Called {
            index: self.index,
            role: self.role.borrow().clone(),
            number,
            sent: Box::new(sent.clone().without_keys(self.redactor)),
            heard: Box::new(heard.clone()),
        };
        let _ = self.sender.send(message);
    }

    fn trying_again(&self, failed: u32, outcome: &Outcome, wait: Duration) {
        let message = Message::Again {
            index: self.index,
            failed,
            outcome: outcome.clone().without_keys(self.redactor),
            wait,
        };
        let _ = self.sender.send(message);
    }

    fn provider_batch(&self, mut update: ProviderBatchUpdate) {
        let hide = |id: &mut String| *id = self.redactor.text(id).into_owned();
        match &mut update {
            ProviderBatchUpdate::Resumed { .. } => {}
            ProviderBatchUpdate::Submitted { id, .. } => hide(id),
            ProviderBatchUpdate::Ended { ids, .. } => ids.iter_mut().for_each(hide),
        }
        let _ = self.sender.send(Message::ProviderBatch(update));
    }

    fn running(&self) -> usize {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = if queue.closed { 0 } else { queue.waiting.len() };
        let free = self.workers.saturating_sub(queue.active.len());
        queue.active.len() + waiting.min(free)
    }
}

/// What to run of a stage, and how.
pub(crate) struct Order<'a> {
    /// Positions in the survey, in order.
    pub(crate) indices: Vec<usize>,
    /// How many at once.
    pub(crate) at_once: AtOnce,
    /// Go on after a failed batch, whatever the stage says.
    pub(crate) keep_going: bool,
    /// The files that a batch made last time, by output, for batches that were made.
    pub(crate) previous: &'a (dyn Fn(&str) -> BTreeMap<String, RelPath> + Sync),
}

/// Batches that wait for a thread.
pub(crate) struct Queue {
    /// Their places in the survey.
    pub(crate) waiting: VecDeque<usize>,
    /// Those that run.
    pub(crate) active: Vec<usize>,
    /// How many failed, those with a placeholder among them.
    pub(crate) failed: u64,
    /// Whether no further one is given out.
    pub(crate) closed: bool,
}

/// Gives out no further batch.
pub(crate) fn close(queue: &Mutex<Queue>, ready: &Condvar) {
    queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
    ready.notify_all();
}

/// A worker, one of so many: takes one batch after another.
pub(crate) fn work(
    stage_ctx: &StageContext<'_>,
    survey: &StageScan,
    order: &Order<'_>,
    queue: &Mutex<Queue>,
    ready: &Condvar,
    sender: &Sender<Message>,
    workers: usize,
) {
    while let Some(index) = next(stage_ctx, survey, order, queue, ready) {
        let found = &survey.batches[index];
        // What lacks an input fails without a try, unless something is published in its place.
        let is_tried = found.decision.is_ok() || stage_ctx.stage.policy.placeholder.is_some();
        if is_tried && sender.send(Message::Begun { index }).is_err() {
            return;
        }
        let begun = Stopwatch::start();
        let token = token(stage_ctx.run_id, &stage_ctx.stage.name, &found.batch.key);
        let telling = EventSender {
            redactor: stage_ctx.ctx.redactor,
            stage: stage_ctx.stage,
            batch: &found.batch.key,
            role: RefCell::default(),
            index,
            token,
            sender,
            queue,
            workers,
        };
        let previous = (order.previous)(&found.batch.key);
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(stage_ctx, found, index as u64 + 1, &telling, &previous)
        }));
        let tried = tried.unwrap_or_else(|_| AttemptResult {
            result: Err(Outcome::new(
                OutcomeKind::Parse,
                "a step broke down: this is a defect of Milepost, please report it",
            )),
            scratch: None,
            log: None,
        });
        // Before the dispatcher hears of it: with one worker, the batch after a failed one must not begin.
        if has_failed(&tried) {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.failed += 1;
            queue.closed |= !goes_on(order, stage_ctx.stage, survey, queue.failed);
        }
        let gone = sender
            .send(Message::Done {
                index,
                tried: Box::new(tried),
                took: begun.elapsed(),
            })
            .is_err();
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.active.retain(|&active| active != index);
        drop(queue);
        ready.notify_all();
        if gone {
            return;
        }
    }
}

fn has_failed(tried: &AttemptResult) -> bool {
    match &tried.result {
        Ok(produced) => produced.placeholder.is_some() || !produced.failed.is_empty(),
        Err(outcome) => !matches!(outcome.kind, OutcomeKind::Cancelled | OutcomeKind::Awaited),
    }
}

/// Whether further batches are given out after so many failed.
fn goes_on(order: &Order<'_>, stage: &Stage, survey: &StageScan, failed: u64) -> bool {
    let too_many = match stage.policy.max_failures {
        Some(MaxFailures::Count(most)) => failed >= most,
        Some(MaxFailures::Share(share)) => failed as f64 > share * survey.batches.len() as f64,
        None => false,
    };
    let tolerated = order.keep_going
        || stage.policy.on_failure == OnFailure::Continue
        || stage.policy.placeholder.is_some();
    tolerated && !too_many
}

/// The next batch that may run, waiting for one if need be; none when all are given out.
fn next(
    stage_ctx: &StageContext<'_>,
    survey: &StageScan,
    order: &Order<'_>,
    queue: &Mutex<Queue>,
    ready: &Condvar,
) -> Option<usize> {
    let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if state.closed || state.waiting.is_empty() || stage_ctx.stop.stopping() {
            return None;
        }
        let place = match &order.at_once {
            AtOnce::Batches(_) => Some(0),
            AtOnce::Values(name, most) => {
                let value = |index: usize| value_of(survey, index, name);
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

fn value_of(survey: &StageScan, index: usize, name: &str) -> String {
    let items = &survey.batches[index].batch.items;
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

/// How many batches run at once where a stage declares nothing and its agent answers in batches: they only wait, and each is one
/// request of the provider's batch.
const IN_BATCHES: usize = 256;

/// How many at once, from the stage's declaration and `--jobs`.
///
/// # Errors
/// When a template gives no number.
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
