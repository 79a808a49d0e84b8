//! Shared state of the threads of a stage, and their messages to the dispatcher.

use crate::run::batch::attempt::token;
use crate::run::batch::live::LiveOutput;
use crate::run::batch::stage_context::{AttemptResult, StageContext};
use crate::run::batch::turn::Turn;
use crate::run::record::words::in_words;
use crate::run::remote::worker_log::StepNote;
use crate::steps::batch_context::{AttemptObserver, StepEvent};
use crate::steps::calls::ProviderBatchUpdate;
use crate::steps::command::StartedProcess;
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::base::words::count;
use milepost_core::model::call::{CallResponse, SentCall, Spent};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Step;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::StageScan;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many batches run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AtOnce {
    Batches(usize),
    /// All batches of this many values of one `each` name.
    Values(String, usize),
}

/// A message from a worker to the dispatcher.
pub(crate) enum Message {
    /// A batch starts.
    Begun { index: usize },
    ProcessStarted {
        index: usize,
        child: StartedProcess,
        /// `MILEPOST_ATTEMPT` in its environment.
        token: String,
        /// Program and arguments without keys, if they are shown.
        program: Option<Vec<String>>,
    },
    /// A program printed lines, which are shown.
    Printed { index: usize, text: String },
    Called {
        index: usize,
        /// The role of the step.
        role: Option<String>,
        /// The number of the call in the run.
        number: u64,
        sent: Box<SentCall>,
        response: Box<CallResponse>,
    },
    /// A provider batch changed its state.
    ProviderBatch(ProviderBatchUpdate),
    /// An event for the journal.
    Happened {
        index: usize,
        kind: EventType,
        /// The role of the step.
        role: Option<String>,
        event: Box<Event>,
        /// The event in one line.
        summary: String,
    },
    /// A step failed and is retried.
    Again {
        index: usize,
        /// The number of the failed attempt, from 1.
        failed: u32,
        outcome: Outcome,
        /// The wait before the next attempt.
        wait: Duration,
    },
    /// Batches were submitted as jobs.
    Submitted {
        executor: ExecutorName,
        /// The scheduler's id of the array.
        id: String,
        jobs: u64,
        batches: u64,
    },
    /// The stage waits for something outside the run.
    Waiting { why: String },
    /// The run is stopped while jobs wait or run: true as the reply leaves them there.
    LeaveJobs {
        executor: ExecutorName,
        jobs: u64,
        reply: Sender<bool>,
    },
    /// No further batch can run, for this reason.
    Unavailable { why: String },
    /// A batch ended.
    Done {
        index: usize,
        tried: Box<AttemptResult>,
        took: Duration,
    },
}

/// The batches of a stage that run, and how.
pub(crate) struct Order<'a> {
    /// Positions in the scan, in order.
    pub(crate) indices: Vec<usize>,
    /// How many batches run at once.
    pub(crate) at_once: AtOnce,
    /// True if one batch runs at a time because no concurrency is declared or requested, and no agent limits its calls.
    pub(crate) may_run_more: bool,
    /// How many batches of the stage failed before these.
    pub(crate) failed_before: u64,
    /// Continues after a failed batch, even if the stage declares otherwise.
    pub(crate) keep_going: bool,
    /// True if the user forces the batches: what jobs of earlier runs made does not count.
    pub(crate) is_forced: bool,
    /// Returns the files that a batch made last time, by output.
    pub(crate) previous: &'a (dyn Fn(&str) -> BTreeMap<String, RelPath> + Sync),
}

/// Batches that wait for a thread.
pub(crate) struct Queue {
    /// Their positions in the scan.
    pub(crate) waiting: VecDeque<usize>,
    /// Batches that run.
    pub(crate) active: Vec<usize>,
    /// How many failed, including those with a placeholder.
    pub(crate) failed: u64,
    /// Whether no further batch starts.
    pub(crate) closed: bool,
    /// Whether nothing receives results any more, because the disk failed.
    pub(crate) is_abandoned: bool,
}

/// The state that the threads of a stage share.
#[derive(Clone, Copy)]
pub(crate) struct StageThreads<'a> {
    pub(crate) stage_ctx: &'a StageContext<'a>,
    pub(crate) scan: &'a StageScan,
    pub(crate) order: &'a Order<'a>,
    pub(crate) queue: &'a Mutex<Queue>,
    pub(crate) ready: &'a Condvar,
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the events of an attempt to the dispatcher. Several calls of the attempt may use it at once.
pub(crate) struct EventSender<'a> {
    redactor: &'a Redactor,
    stage: &'a Stage,
    batch: &'a str,
    index: usize,
    /// The role of the current step.
    role: Mutex<Option<String>>,
    turn: Mutex<Turn>,
    spent: Mutex<Spent>,
    token: String,
    sender: &'a Sender<Message>,
    queue: &'a Mutex<Queue>,
    workers: usize,
    /// The output of programs, if it is shown.
    live: Option<Mutex<LiveOutput<'a>>>,
}

impl<'a> EventSender<'a> {
    fn show(&self, take: impl FnOnce(&mut LiveOutput<'a>) -> Option<String>) {
        let text = self.live.as_ref().and_then(|live| take(&mut lock(live)));
        if let Some(text) = text {
            let index = self.index;
            let _ = self.sender.send(Message::Printed { index, text });
        }
    }
}

impl EventSender<'_> {
    /// Returns the role of a step, or who acts for the stage.
    fn role_of<'s>(&'s self, step: &'s Step) -> &'s str {
        step.role.as_deref().unwrap_or_else(|| self.stage.actor())
    }

    fn happened(&self, kind: EventType, event: Event, summary: String) {
        let message = Message::Happened {
            index: self.index,
            kind,
            role: lock(&self.role).clone(),
            event: Box::new(event),
            summary,
        };
        let _ = self.sender.send(message);
    }
}

impl AttemptObserver for EventSender<'_> {
    fn event(&self, event: StepEvent<'_>) {
        let (stage, batch) = (self.stage.name.clone(), self.batch.to_owned());
        let name = batch_name(&stage, &batch);
        let place = |round: Option<u32>| match round {
            Some(round) => format!("{name}, iteration {round}"),
            None => name.clone(),
        };
        let (kind, event, summary) = match event {
            StepEvent::Step(step, round) => {
                lock(&self.role).clone_from(&step.role);
                if !self.stage.tells_steps() {
                    return;
                }
                let role = self.role_of(step);
                let passed = lock(&self.turn).pass_to(role, (&stage, &batch), round);
                if let Some((event, text)) = passed {
                    let text = format!("{}: {text}", place(round));
                    self.happened(EventType::Handoff, event, text);
                }
                let out = step.out.clone();
                let summary = format!("{}: {out} starts", place(round));
                let event = Event::StepStarted {
                    stage,
                    batch,
                    out,
                    round,
                };
                (EventType::Invoke, event, summary)
            }
            StepEvent::Finished(step, round, said) => {
                let out = step.out.clone();
                let role = self.role_of(step);
                lock(&self.turn).finished(role, &out, said.as_ref());
                let words = said.as_ref().map(in_words).unwrap_or_default();
                let words = match words.join(", ") {
                    words if words.is_empty() => words,
                    words => format!(": {words}"),
                };
                let summary = format!("{}: {out} done{words}", place(round));
                let event = Event::StepFinished {
                    stage,
                    batch,
                    out,
                    round,
                    summary: said,
                };
                (EventType::Complete, event, summary)
            }
            StepEvent::Refused {
                number,
                valid,
                violations,
            } => {
                let hide = |line: &String| self.redactor.text(line).into_owned();
                let violations: Vec<String> = violations.iter().map(hide).collect();
                let wrong = count(violations.len() as u64, "violation", "violations");
                let right = count(valid, "valid answer", "valid answers");
                let summary = format!("{name}, call {number}: {right}, {wrong}");
                let event = Event::AnswersRefused {
                    stage,
                    batch,
                    number,
                    valid,
                    violations,
                };
                (EventType::Review, event, summary)
            }
            StepEvent::Judged(round) => {
                let how = if round.right { "right" } else { "not right" };
                let score = round.score.map(|score| format!(", score {score}"));
                let score = score.unwrap_or_default();
                let said = round.summary.as_ref().map(|said| format!(": {said}"));
                let said = said.unwrap_or_default();
                let summary = format!("{name}, iteration {}: {how}{score}{said}", round.round);
                let event = Event::RoundJudged {
                    stage,
                    batch,
                    round,
                };
                (EventType::Review, event, summary)
            }
            StepEvent::Revises(round, why) => {
                if let Some(last) = self.stage.steps.last() {
                    // An earlier run may have finished the iterations before.
                    lock(&self.turn).resume(self.role_of(last), &last.out);
                }
                let summary = format!("{name} starts iteration {round} after {why}");
                let event = Event::RoundStarted {
                    stage,
                    batch,
                    round,
                    why: why.to_owned(),
                };
                (EventType::Revision, event, summary)
            }
        };
        self.happened(kind, event, summary);
    }

    fn printed(&self, bytes: &[u8]) {
        self.show(|live| live.push(bytes));
    }

    fn printed_all(&self) {
        self.show(LiveOutput::rest);
    }

    fn started(&self, child: &StartedProcess, program: &[String]) {
        let shown = || {
            let words = program.iter();
            words
                .map(|word| self.redactor.text(word).into_owned())
                .collect()
        };
        let message = Message::ProcessStarted {
            index: self.index,
            child: child.clone(),
            token: self.token.clone(),
            program: self.live.as_ref().map(|_| shown()),
        };
        // The dispatcher outlives its workers, so the message arrives.
        let _ = self.sender.send(message);
    }

    fn called(&self, number: u64, sent: &SentCall, response: &CallResponse) {
        *lock(&self.spent) += Spent::of(sent, Some(response));
        let message = Message::Called {
            index: self.index,
            role: lock(&self.role).clone(),
            number,
            sent: Box::new(sent.clone().without_keys(self.redactor)),
            response: Box::new(response.clone()),
        };
        let _ = self.sender.send(message);
    }

    fn spent(&self) -> Spent {
        *lock(&self.spent)
    }

    fn trying_again(&self, failed: u32, outcome: &Outcome, wait: Duration) {
        let message = Message::Again {
            index: self.index,
            failed,
            outcome: outcome.clone().for_record(self.redactor),
            wait,
        };
        let _ = self.sender.send(message);
    }

    fn waiting(&self, why: &str) {
        let why = why.to_owned();
        let _ = self.sender.send(Message::Waiting { why });
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
        let queue = lock(self.queue);
        let waiting = if queue.closed { 0 } else { queue.waiting.len() };
        let free = self.workers.saturating_sub(queue.active.len());
        queue.active.len() + waiting.min(free)
    }
}

/// Returns what sends the events of a batch.
pub(crate) fn events<'a>(
    threads: StageThreads<'a>,
    sender: &'a Sender<Message>,
    workers: usize,
    index: usize,
) -> EventSender<'a> {
    let stage_ctx = threads.stage_ctx;
    let batch = &threads.scan.batches[index].batch.key;
    let token = token(stage_ctx.token, &stage_ctx.stage.name, batch);
    let live = || LiveOutput::new(stage_ctx.ctx.redactor, &stage_ctx.waiting_output);
    EventSender {
        redactor: stage_ctx.ctx.redactor,
        stage: stage_ctx.stage,
        batch,
        role: Mutex::default(),
        turn: Mutex::default(),
        spent: Mutex::default(),
        index,
        token,
        sender,
        queue: threads.queue,
        workers,
        live: stage_ctx.live.then(|| Mutex::new(live())),
    }
}

/// Sends the events of steps that ran on another machine.
pub(crate) fn replay(
    threads: StageThreads<'_>,
    sender: &Sender<Message>,
    index: usize,
    steps: &[StepNote],
) {
    let events = events(threads, sender, 1, index);
    let step = |position: usize| threads.stage_ctx.stage.steps.get(position);
    for note in steps {
        match note {
            StepNote::Began(at) => step(*at).map(|step| events.event(StepEvent::Step(step, None))),
            StepNote::Ended(at, summary) => step(*at).map(|step| {
                events.event(StepEvent::Finished(step, None, summary.clone()));
            }),
        };
    }
}
