//! The runner's side: submits batches, follows their jobs, and reports to the dispatcher as if the batches ran here.

use crate::run::batch::attempt;
use crate::run::batch::stage_context::{AttemptResult, StageContext};
use crate::run::batch::workers::{self, Message, Order, Queue};
use crate::run::remote::arrays::{JobNews, OpenArray, OpenBatch};
use crate::run::remote::attach::{RemoteError, attach};
use crate::run::remote::decide::Decided;
use crate::run::remote::harvest;
use crate::run::remote::outcomes::{Consequence, Unrecorded, consequence};
use crate::run::remote::overview;
use crate::run::remote::pack::{LimitFailures, WaitingBatch};
use crate::run::remote::worker_log::BatchResult;
use crate::run::remote::{CancelledJobs, ExecutorError, PolledArray, Remote};
use crate::steps::attempt::stage_is_over;
use crate::steps::batch_context::cancelled;
use milepost_core::base::duration::show_duration;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::plan::scan::StageScan;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::jobs::Submission;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// After how many unanswered questions the user is told that the scheduler does not answer.
const SILENCE: u32 = 3;

/// A result whose files may not be visible yet.
struct Finished {
    index: usize,
    result: BatchResult,
    job: JobOfBatch,
    since: Stopwatch,
}

/// Follows the jobs of a stage.
pub(crate) struct Driver<'a> {
    pub(crate) remote: &'a Remote<'a>,
    pub(crate) stage_ctx: &'a StageContext<'a>,
    pub(crate) survey: &'a StageScan,
    pub(crate) order: &'a Order<'a>,
    queue: &'a Mutex<Queue>,
    ready: &'a Condvar,
    pub(crate) sender: &'a Sender<Message>,
    /// Batches without a result, by their positions.
    pub(crate) open: BTreeMap<usize, OpenBatch>,
    /// Those of them that are in no job.
    pub(crate) waiting: VecDeque<WaitingBatch>,
    keys: BTreeMap<&'a str, usize>,
    pub(crate) arrays: Vec<OpenArray>,
    finished: Vec<Finished>,
    /// Unanswered questions in a row.
    silence: u32,
    asked: Option<Stopwatch>,
    /// True if no further batch may begin.
    is_closing: bool,
}

/// Runs batches as jobs until all have a result, or the run is stopped. Returns the submissions that no later run needs.
pub(crate) fn drive<'a>(
    remote: &'a Remote<'a>,
    stage_ctx: &'a StageContext<'a>,
    survey: &'a StageScan,
    order: &'a Order<'a>,
    queue: &'a Mutex<Queue>,
    ready: &'a Condvar,
    sender: &'a Sender<Message>,
) -> Vec<Submission> {
    let keys = order.indices.iter();
    let keys = keys.map(|&index| (survey.batches[index].batch.key.as_str(), index));
    let mut driver = Driver {
        remote,
        stage_ctx,
        survey,
        order,
        queue,
        ready,
        sender,
        open: BTreeMap::new(),
        waiting: VecDeque::new(),
        keys: keys.collect(),
        arrays: Vec::new(),
        finished: Vec::new(),
        silence: 0,
        asked: None,
        is_closing: false,
    };
    if let Err(error) = driver.run() {
        let redactor = stage_ctx.ctx.redactor;
        let why = redactor.text(&error.to_string()).into_owned();
        let _ = sender.send(Message::Unavailable { why });
    }
    driver.end()
}

impl Driver<'_> {
    fn run(&mut self) -> Result<(), RemoteError> {
        let (startable, failed): (Vec<usize>, Vec<usize>) = self
            .order
            .indices
            .iter()
            .partition(|&&index| self.survey.batches[index].decision.is_ok());
        for index in failed {
            let (queue, ready) = (self.queue, self.ready);
            workers::run_one(
                self.stage_ctx,
                self.survey,
                self.order,
                queue,
                ready,
                self.sender,
                1,
                index,
            );
        }
        self.open = startable
            .iter()
            .map(|&index| (index, OpenBatch::default()))
            .collect();
        self.arrays = if self.order.is_forced {
            Vec::new()
        } else {
            attach(self.remote, self.stage_ctx, self.survey, &startable)?
        };
        self.wait_for_jobs(&startable);
        let tick = (self.remote.settings.poll / 10)
            .clamp(Duration::from_millis(100), Duration::from_secs(1));
        loop {
            self.read_logs()?;
            self.harvest();
            match self.closed() {
                // The next run finds the jobs.
                (_, true) => {
                    self.arrays
                        .iter_mut()
                        .for_each(|array| array.is_kept = true);
                    return Ok(());
                }
                (true, _) if !self.is_closing => self.close(),
                _ => {}
            }
            if self.stage_ctx.stop.stopping() {
                self.stop();
                return Ok(());
            }
            if self.stage_ctx.left().is_some_and(|left| left.is_zero()) {
                self.time_out();
                return Ok(());
            }
            if self.open.is_empty() || self.is_closing && !self.has_jobs() {
                return Ok(());
            }
            if !self.is_closing {
                self.submit()?;
            }
            self.poll();
            self.settle();
            self.stage_ctx.stop.wait(tick);
        }
    }

    /// Puts batches that are in no job into the queue.
    fn wait_for_jobs(&mut self, indices: &[usize]) {
        let jobs = self.arrays.iter().flat_map(|array| &array.jobs);
        let taken: std::collections::BTreeSet<usize> =
            jobs.flat_map(|job| job.batches.iter().copied()).collect();
        let free = indices.iter().filter(|index| !taken.contains(index));
        self.waiting = free
            .map(|&index| WaitingBatch {
                index,
                failures: LimitFailures::default(),
                is_alone: false,
            })
            .collect();
    }

    /// Returns whether no further batch may begin, and whether nothing receives results any more.
    fn closed(&self) -> (bool, bool) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        (queue.closed, queue.is_abandoned)
    }

    fn has_jobs(&self) -> bool {
        self.arrays.iter().any(OpenArray::is_open)
    }

    /// Reads the logs of all processes.
    fn read_logs(&mut self) -> Result<(), RemoteError> {
        let mut all = Vec::new();
        for array in &mut self.arrays {
            let id = array.id.clone();
            let name = |number| self.remote.executor.describe(&id, number);
            all.extend(array.news(&name)?);
        }
        for news in all {
            match news {
                JobNews::Begun(key) => {
                    if let Some(index) = self.position(&key) {
                        self.begin(index);
                    }
                }
                // The first record counts, whatever runs twice.
                JobNews::Done(result, job) => {
                    let known = self.position(&result.batch);
                    let index = known.filter(|index| {
                        !self
                            .finished
                            .iter()
                            .any(|finished| finished.index == *index)
                    });
                    self.finished.extend(index.map(|index| Finished {
                        index,
                        result: *result,
                        job,
                        since: Stopwatch::start(),
                    }));
                }
            }
        }
        Ok(())
    }

    /// Returns the position of a batch that has no result yet.
    fn position(&self, key: &str) -> Option<usize> {
        let index = self.keys.get(key).copied();
        index.filter(|index| self.open.contains_key(index))
    }

    /// Reports that a batch begins, once.
    fn begin(&mut self, index: usize) {
        let Some(batch) = self.open.get_mut(&index) else {
            return;
        };
        if !std::mem::replace(&mut batch.was_begun, true) {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.active.push(index);
            drop(queue);
            let _ = self.sender.send(Message::Begun { index });
        }
    }

    /// Takes over finished batches whose files are visible.
    fn harvest(&mut self) {
        let visible = self.remote.settings.visible;
        for finished in std::mem::take(&mut self.finished) {
            let hidden = harvest::invisible(self.stage_ctx, &finished.result);
            let Finished {
                index,
                result,
                job,
                since,
            } = finished;
            let Some(file) = hidden else {
                if result.lacked_memory
                    && let Some(outcome) = self.grow_memory(index, &result)
                {
                    self.retry(index, outcome);
                    continue;
                }
                let took = Duration::from_millis(result.took_ms);
                let done = harvest::adopt(self.stage_ctx, result, &job);
                self.finish(index, done, took);
                continue;
            };
            if since.elapsed() < visible {
                self.finished.push(Finished {
                    index,
                    result,
                    job,
                    since,
                });
                continue;
            }
            let outcome = harvest::never_visible(&file, &job, &show_duration(visible));
            let batch = self.open.get(&index).map_or(0, |batch| batch.losses);
            if batch == 0 {
                self.retry(index, outcome);
            } else {
                self.fail(index, outcome);
            }
        }
    }

    /// Returns the outcome of a batch whose program lacked memory, if its next job gets more.
    fn grow_memory(&self, index: usize, result: &BatchResult) -> Option<Outcome> {
        let outcome = result.result.as_ref().err()?;
        let failures = self.open.get(&index)?.failures;
        let batch = Unrecorded {
            was_begun: true,
            was_first: true,
            had_process: true,
            failures,
            losses: 0,
        };
        let end = Some(crate::run::remote::JobEnd::OutOfMemory);
        let needs = self.needs();
        (consequence(end, batch, &needs) == Consequence::Retry(OutcomeKind::Memory))
            .then(|| outcome.clone())
    }

    /// Returns what the jobs of the stage get.
    pub(crate) fn needs(&self) -> milepost_core::model::executor::Resources {
        let settings = &self.remote.settings.resources;
        self.stage_ctx.stage.resources.or(settings)
    }

    /// Reports the result of a batch.
    fn finish(&mut self, index: usize, result: AttemptResult, took: Duration) {
        self.begin(index);
        self.open.remove(&index);
        self.waiting.retain(|batch| batch.index != index);
        for job in self.arrays.iter_mut().flat_map(|array| &mut array.jobs) {
            job.batches.retain(|&batch| batch != index);
        }
        workers::report(
            self.stage_ctx,
            self.survey,
            self.order,
            self.queue,
            self.ready,
            self.sender,
            index,
            result,
            took,
        );
    }

    /// Fails a batch.
    fn fail(&mut self, index: usize, outcome: Outcome) {
        let found = &self.survey.batches[index];
        let result = attempt::fail(self.stage_ctx, found, index as u64 + 1, outcome);
        self.finish(index, result, Duration::ZERO);
    }

    /// Gives a batch that failed another job, of its own.
    fn retry(&mut self, index: usize, failed: Outcome) {
        self.begin(index);
        for job in self.arrays.iter_mut().flat_map(|array| &mut array.jobs) {
            job.batches.retain(|&batch| batch != index);
        }
        let Some(batch) = self.open.get_mut(&index) else {
            return;
        };
        batch.failed += 1;
        match failed.kind {
            OutcomeKind::Memory => batch.failures.memory += 1,
            OutcomeKind::Timeout => batch.failures.time += 1,
            _ => batch.losses += 1,
        }
        self.waiting.push_front(WaitingBatch {
            index,
            failures: batch.failures,
            is_alone: true,
        });
        let message = Message::Again {
            index,
            failed: batch.failed,
            outcome: failed.for_record(self.stage_ctx.ctx.redactor),
            wait: Duration::ZERO,
        };
        let _ = self.sender.send(message);
    }

    /// Asks the scheduler for the states of all jobs, if it is time to.
    fn poll(&mut self) {
        let pause = self.remote.settings.poll;
        if (self.asked.as_ref()).is_some_and(|asked| asked.elapsed() < pause) {
            return;
        }
        let open = self.arrays.iter().filter(|array| array.is_open());
        let open: Vec<PolledArray> = open.map(OpenArray::polled).collect();
        if open.is_empty() {
            return;
        }
        self.asked = Some(Stopwatch::start());
        match self.remote.executor.poll(&open) {
            Ok(states) => {
                self.silence = 0;
                for array in &mut self.arrays {
                    array.take_states(&states);
                    overview::keep(array);
                }
            }
            Err(error) => {
                // Jobs run on while the scheduler does not answer, and their logs grow.
                self.silence += 1;
                if self.silence == SILENCE {
                    self.warn(&error);
                }
            }
        }
    }

    fn warn(&self, error: &ExecutorError) {
        let redactor = self.stage_ctx.ctx.redactor;
        let why = redactor.text(&error.to_string()).into_owned();
        let _ = self.sender.send(Message::SchedulerSilent { why });
    }

    /// Decides the batches without a record of jobs that have ended.
    fn settle(&mut self) {
        let visible = self.remote.settings.visible;
        let mut decided = Vec::new();
        for array in &mut self.arrays {
            for number in 0..array.jobs.len() {
                let job = &array.jobs[number];
                if job.is_over || !job.has_ended() {
                    continue;
                }
                if !job.batches.is_empty() && !job.has_settled(visible) {
                    continue;
                }
                let number = number as u64;
                decided.extend(self.remote.decide(array, number, self.survey, &self.open));
                let job = &mut array.jobs[number as usize];
                job.is_over = true;
                job.batches.clear();
            }
        }
        // A record that waits for its files decides its batch.
        let is_finished = |index: usize| self.finished.iter().any(|it| it.index == index);
        decided.retain(|(index, _)| !is_finished(*index));
        if self.is_closing {
            let open = &self.open;
            decided.retain(|(index, _)| open.get(index).is_some_and(|batch| batch.was_begun));
        }
        for (index, consequence) in decided {
            match consequence {
                Decided::Retry(outcome) if self.is_closing => self.fail(index, outcome),
                Decided::Again { alone } => self.again(index, alone),
                Decided::Retry(outcome) => self.retry(index, outcome),
                Decided::Fail(outcome) => self.fail(index, outcome),
            }
        }
    }

    /// Puts a batch that was not at fault back into the queue.
    fn again(&mut self, index: usize, is_alone: bool) {
        let Some(batch) = self.open.get(&index) else {
            return;
        };
        self.waiting.push_back(WaitingBatch {
            index,
            failures: batch.failures,
            is_alone,
        });
    }

    /// Lets no further batch begin: jobs end after their current batch.
    fn close(&mut self) {
        self.is_closing = true;
        self.waiting.clear();
        for array in self.arrays.iter().filter(|array| array.is_open()) {
            let _ = array.submission.write(&["stop"], b"");
            let _ = self
                .remote
                .executor
                .cancel(&array.id, CancelledJobs::Queued);
        }
    }

    /// Stops the run: its jobs are left or cancelled, as the user says.
    fn stop(&mut self) {
        let open = self.arrays.iter().flat_map(|array| &array.jobs);
        let jobs = open.filter(|job| !job.is_over).count() as u64;
        let mut is_left = false;
        if jobs > 0 {
            let (reply, answer) = channel();
            let executor = self.remote.name;
            let question = Message::LeaveJobs {
                executor,
                jobs,
                reply,
            };
            let asked = self.sender.send(question).is_ok();
            is_left = asked && answer.recv().unwrap_or(true);
            if !is_left {
                self.cancel_all();
            }
        }
        for array in &mut self.arrays {
            array.is_kept |= is_left && array.is_open();
        }
        let begun: Vec<usize> = (self.open.iter())
            .filter(|(_, batch)| batch.was_begun)
            .map(|(&index, _)| index)
            .collect();
        for index in begun {
            self.finish(index, without_files(cancelled()), Duration::ZERO);
        }
    }

    /// Ends all batches, because the time of the stage is over.
    fn time_out(&mut self) {
        self.cancel_all();
        let open: Vec<usize> = self.open.keys().copied().collect();
        for index in open {
            self.fail(index, stage_is_over(self.stage_ctx.stage));
        }
    }

    fn cancel_all(&self) {
        for array in self.arrays.iter().filter(|array| array.is_open()) {
            if let Err(error) = self.remote.executor.cancel(&array.id, CancelledJobs::All) {
                self.warn(&error);
            }
        }
    }

    /// Returns the submissions that no later run needs, and leaves the batches that did not begin to the queue.
    fn end(self) -> Vec<Submission> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.open.iter().filter(|(_, batch)| !batch.was_begun);
        queue.waiting = left.map(|(&index, _)| index).collect();
        drop(queue);
        let arrays = self.arrays.into_iter().filter(|array| !array.is_kept);
        arrays.map(|array| array.submission).collect()
    }
}

fn without_files(outcome: Outcome) -> AttemptResult {
    AttemptResult {
        result: Err(outcome),
        scratch: None,
        log: None,
    }
}
