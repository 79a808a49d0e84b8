//! Runs the batches of a stage on threads, records their events, and commits them in groups.

mod finished;
mod one_at_a_time;

use crate::run::batch::attempt::{once, without_scratch};
use crate::run::batch::events::{AtOnce, Message, Order, Queue, StageThreads};
use crate::run::batch::live::WaitingOutput;
use crate::run::batch::set_aside::Refused;
use crate::run::batch::stage_context::StageContext;
use crate::run::batch::workers::{STACK, work};
use crate::run::error::RunError;
use crate::run::notice::{Notice, Observer};
use crate::run::record::claims::Claims;
use crate::run::record::commit::{Finished, commit};
use crate::run::record::progress::ProgressWriter;
use crate::run::record::recorder::Recorder;
use crate::run::remote::{Remote, driver::drive};
use crate::steps::command::{StartedProcess, StopSignal};
use milepost_core::base::in_order::no_thread::no_thread;
use milepost_core::model::call::Spent;
use milepost_core::model::event::{Child, Event, EventType};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::BatchState;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::scratch::ScratchPool;
use one_at_a_time::OneAtATime;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A group is committed at this age, at this size, or when nothing runs.
const GROUP_AGE: Duration = Duration::from_millis(200);
const GROUP_SIZE: usize = 1000;

/// Maximum number of threads, even if more are requested.
const THREADS: usize = 512;

/// The most threads if an agent uses provider batches: each only waits for a request.
const PARKED: usize = 4096;

/// The result of running batches of a stage.
#[derive(Debug, Default)]
pub(crate) struct Dispatched {
    /// Batches that were built.
    pub(crate) ran: u64,
    /// Failed batches with their outcomes.
    pub(crate) failed: Vec<(String, Outcome)>,
    /// Batches that were not started, because another failed or the run was stopped.
    pub(crate) left: u64,
    /// True if no further batch of the stage starts, because too many failed.
    pub(crate) is_closed: bool,
    /// The cost of calls.
    pub(crate) spent: Spent,
    /// Why batches wait for budget.
    pub(crate) held: Option<String>,
    /// Batches that wait for external agents.
    pub(crate) awaits: u64,
    /// The agent that cannot be reached, and why.
    pub(crate) unreachable: Option<String>,
    /// Why a scheduler took no further batch.
    pub(crate) unavailable: Option<String>,
}

impl Dispatched {
    /// Adds the result of further batches.
    pub(crate) fn add(&mut self, more: Self) {
        self.ran += more.ran;
        self.failed.extend(more.failed);
        self.left += more.left;
        self.is_closed |= more.is_closed;
        self.spent += more.spent;
        self.held = self.held.take().or(more.held);
        self.awaits += more.awaits;
        self.unreachable = self.unreachable.take().or(more.unreachable);
        self.unavailable = self.unavailable.take().or(more.unavailable);
    }
}

/// Runs batches of a stage.
///
/// # Errors
/// When the disk fails or the journal cannot be written.
#[expect(clippy::too_many_arguments)]
pub(crate) fn dispatch(
    recorder: &mut Recorder<'_>,
    stage_ctx: &StageContext<'_>,
    scan: &StageScan,
    order: &Order<'_>,
    observer: &mut dyn Observer,
    progress: &mut ProgressWriter<'_>,
    remote: Option<&Remote<'_>>,
) -> Result<Dispatched, RunError> {
    let workers = match &order.at_once {
        AtOnce::Batches(count) => *count,
        AtOnce::Values(..) => 64,
    };
    let most = if stage_ctx.agents.are_batched() {
        PARKED
    } else {
        THREADS
    };
    let workers = workers.clamp(1, order.indices.len().clamp(1, most));
    let queue = Mutex::new(Queue {
        waiting: order.indices.iter().copied().collect(),
        active: Vec::new(),
        failed: order.failed_before,
        closed: false,
        is_abandoned: false,
    });
    let ready = Condvar::new();
    let shared = StageThreads {
        stage_ctx,
        scan,
        order,
        queue: &queue,
        ready: &ready,
    };
    let (sender, receiver) = channel();
    std::thread::scope(|threads| {
        let unstarted = |error: std::io::Error| RunError::World(no_thread(&error));
        let following = remote.map(|remote| {
            let (sender, thread) = (sender.clone(), std::thread::Builder::new());
            thread.spawn_scoped(threads, move || drive(remote, shared, &sender))
        });
        let following = following.transpose().map_err(unstarted)?;
        let workers = if remote.is_some() { 0 } else { workers };
        for number in 0..workers {
            let sender = sender.clone();
            let thread = std::thread::Builder::new().stack_size(STACK);
            let spawned = thread.spawn_scoped(threads, move || {
                work(shared, &sender, workers);
            });
            // Fewer threads than requested suffice.
            match spawned {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(unstarted(error)),
                Err(_) => break,
            }
        }
        drop(sender);
        let known = recorder.state.stages.get(&stage_ctx.stage.name);
        let mut hearing = Dispatcher {
            claims: Claims::new(stage_ctx.ctx.layout, stage_ctx.stage, scan, known),
            recorder,
            stage: stage_ctx.stage,
            scan,
            observer,
            ready: &ready,
            stop: stage_ctx.stop,
            scratch_pool: &stage_ctx.scratch_pool,
            waiting_output: &stage_ctx.waiting_output,
            group: Vec::new(),
            tries: BTreeMap::new(),
            spent: BTreeMap::new(),
            refused: BTreeMap::new(),
            roles: BTreeMap::new(),
            running: BTreeSet::new(),
            changes: 0,
            done: Dispatched::default(),
            leaves_jobs: false,
            one_at_a_time: order
                .may_run_more
                .then(|| OneAtATime::new(order.indices.len() as u64, stage_ctx.limits.pace.slow)),
        };
        let received = hearing.hear(&receiver, progress);
        // The workers must end before the scope, even after an error.
        if received.is_err() {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.is_abandoned = true;
        }
        let is_closed = {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut queue.closed, true)
        };
        ready.notify_all();
        received?;
        let mut done = Dispatched {
            is_closed,
            ..hearing.done
        };
        // Everything that they made is published.
        let over = following.map(|driver| driver.join().unwrap_or_default());
        for submission in over.into_iter().flatten() {
            submission.remove()?;
        }
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        done.left += queue.waiting.len() as u64;
        Ok(done)
    })
}

/// Receives the events of running batches, and records them.
pub(crate) struct Dispatcher<'a, 'k> {
    pub(crate) recorder: &'a mut Recorder<'k>,
    pub(crate) stage: &'a Stage,
    pub(crate) scan: &'a StageScan,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) ready: &'a Condvar,
    pub(crate) stop: &'a dyn StopSignal,
    pub(crate) scratch_pool: &'a ScratchPool,
    pub(crate) waiting_output: &'a WaitingOutput,
    pub(crate) group: Vec<Finished>,
    pub(crate) tries: BTreeMap<usize, u32>,
    /// The cost of the calls of each batch.
    pub(crate) spent: BTreeMap<usize, Spent>,
    /// Calls with invalid answers by batch, with their violations.
    pub(crate) refused: BTreeMap<usize, Vec<Refused>>,
    /// The roles of current steps.
    pub(crate) roles: BTreeMap<usize, String>,
    pub(crate) running: BTreeSet<usize>,
    pub(crate) claims: Claims<'a>,
    /// Writes the progress file.
    pub(crate) changes: u64,
    pub(crate) done: Dispatched,
    /// True if the run was stopped and its jobs continue.
    pub(crate) leaves_jobs: bool,
    /// Watches calls, if more batches might run at a time.
    pub(crate) one_at_a_time: Option<OneAtATime>,
}

impl Dispatcher<'_, '_> {
    fn hear(
        &mut self,
        receiver: &Receiver<Message>,
        progress: &mut ProgressWriter<'_>,
    ) -> Result<(), RunError> {
        let mut opened: Option<Stopwatch> = None;
        let mut shown = self.changes;
        loop {
            let wait = match &opened {
                Some(since) => GROUP_AGE.saturating_sub(since.elapsed()),
                None => GROUP_AGE,
            };
            // The progress file is written when due, however long batches take.
            let wait = progress.due_in().map_or(wait, |due| due.min(wait));
            match receiver.recv_timeout(wait) {
                Ok(message) => self.take(message)?,
                Err(RecvTimeoutError::Timeout) => {
                    if self.stop.stopping() {
                        self.ready.notify_all();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.close_group()?;
                    // The end of the stage writes the last version.
                    return Ok(());
                }
            }
            if self.group.is_empty() {
                opened = None;
            } else {
                let since = opened.get_or_insert_with(Stopwatch::start);
                if self.group.len() >= GROUP_SIZE || since.elapsed() >= GROUP_AGE {
                    self.close_group()?;
                    opened = None;
                    self.changes += 1;
                }
            }
            if shown != self.changes {
                shown = self.changes;
                progress.changed();
            }
            progress.write_if_due(self.recorder, self.scan, &self.running)?;
        }
    }

    fn take(&mut self, message: Message) -> Result<(), RunError> {
        match message {
            Message::Begun { index } => self.begun(index, 1),
            Message::ProcessStarted {
                index,
                child,
                token,
                program,
            } => self.started(index, &child, token, program),
            Message::Printed { index, text } => {
                self.waiting_output.shown(text.len());
                self.observer.notice(Notice::Printed {
                    stage: self.stage.name.clone(),
                    batch: self.key(index),
                    text,
                });
                Ok(())
            }
            Message::Called {
                index,
                role,
                number,
                sent,
                response,
            } => self.called(index, role, number, (&sent, &response)),
            Message::Happened {
                index,
                kind,
                role,
                event,
                summary,
            } => self.happened(index, kind, role, *event, summary),
            Message::ProviderBatch(update) => {
                let stage = self.stage.name.clone();
                self.observer
                    .notice(Notice::ProviderBatch { stage, update });
                Ok(())
            }
            Message::Again {
                index,
                failed,
                outcome,
                wait,
            } => self.again(index, failed, outcome, wait),
            Message::Submitted {
                executor,
                id,
                jobs,
                batches,
            } => self.submitted(executor, id, jobs, batches),
            Message::Waiting { why } => {
                let stage = self.stage.name.clone();
                self.observer.notice(Notice::Waiting { stage, why });
                Ok(())
            }
            Message::LeaveJobs {
                executor,
                jobs,
                reply,
            } => {
                self.leaves_jobs = self.observer.leaves_jobs(executor, jobs);
                let _ = reply.send(self.leaves_jobs);
                Ok(())
            }
            Message::Unavailable { why } => {
                self.done.unavailable = Some(why);
                Ok(())
            }
            Message::Done { index, tried, took } => self.finished(index, *tried, took),
        }
    }

    pub(crate) fn key(&self, index: usize) -> String {
        self.scan.batches[index].batch.key.clone()
    }

    fn begun(&mut self, index: usize, attempt: u32) -> Result<(), RunError> {
        let batch = self.key(index);
        let name = batch_name(&self.stage.name, &batch);
        self.tries.insert(index, attempt);
        self.changes += 1;
        self.running.insert(index);
        let event = Event::AttemptStarted {
            stage: self.stage.name.clone(),
            batch: batch.clone(),
            attempt,
        };
        let summary = if attempt == 1 {
            format!("{name} starts")
        } else {
            format!("{name} starts again, attempt {attempt}")
        };
        self.recorder
            .record(EventType::Invoke, self.stage.actor(), event, summary)?;
        if attempt == 1 {
            self.observer.notice(Notice::BatchStarted {
                stage: self.stage.name.clone(),
                batch,
            });
        }
        Ok(())
    }

    fn started(
        &mut self,
        index: usize,
        child: &StartedProcess,
        token: String,
        program: Option<Vec<String>>,
    ) -> Result<(), RunError> {
        let batch = self.key(index);
        if let Some(program) = program {
            self.observer.notice(Notice::CommandStarted {
                stage: self.stage.name.clone(),
                batch: batch.clone(),
                program,
            });
        }
        let name = batch_name(&self.stage.name, &batch);
        let summary = format!("{name} started process {}", child.pid);
        let event = Event::ChildStarted(Child {
            stage: self.stage.name.clone(),
            batch,
            pid: child.pid,
            start_time: child.start_time,
            boot_id: child.boot_id.clone(),
            token,
        });
        self.recorder
            .record(EventType::Invoke, &self.acting(index), event, summary)
    }

    fn again(
        &mut self,
        index: usize,
        failed: u32,
        outcome: Outcome,
        wait: Duration,
    ) -> Result<(), RunError> {
        let batch = self.key(index);
        let name = batch_name(&self.stage.name, &batch);
        let attempt = self.tries.get(&index).copied().unwrap_or(1);
        let event = Event::AttemptFailed {
            stage: self.stage.name.clone(),
            batch: batch.clone(),
            attempt,
            outcome: outcome.clone(),
        };
        let summary = format!("{name}, attempt {attempt}: {outcome}");
        self.recorder
            .record(EventType::Error, &self.acting(index), event, summary)?;
        self.observer.notice(Notice::TryingAgain {
            stage: self.stage.name.clone(),
            batch,
            attempt: failed,
            outcome,
            wait,
        });
        self.begun(index, attempt + 1)
    }

    fn close_group(&mut self) -> Result<(), RunError> {
        let group = std::mem::take(&mut self.group);
        let sent = group.iter().filter_map(|finished| {
            let done = finished.produced.sent.clone()?;
            Some((finished.index, done))
        });
        let sent: Vec<(usize, String)> = sent.collect();
        let committed = commit(
            self.recorder,
            self.stage,
            self.scan,
            group,
            self.scratch_pool,
        );
        if let Err(error) = &committed {
            for (index, done) in sent {
                let known = self.recorder.state.stages.get(&self.stage.name);
                let known = known.and_then(|known| known.batches.get(&self.key(index)));
                if known.is_some_and(BatchState::is_tried) {
                    let outcome = Outcome::new(OutcomeKind::Output, error.to_string());
                    let failed = without_scratch(once(outcome, &done));
                    self.finished(index, failed, Duration::ZERO)?;
                }
            }
            self.recorder.flush()?;
        }
        committed?;
        if let Some(notice) = self.recorder.newly_kept() {
            self.observer.notice(notice);
        }
        Ok(())
    }
}
