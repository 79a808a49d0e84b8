//! The runner's side: submits batches, follows their jobs, and reports to the dispatcher as if the batches ran here.

use crate::run::batch::attempt;
use crate::run::batch::events::{Message, StageThreads};
use crate::run::batch::stage_context::AttemptResult;
use crate::run::batch::workers;
use crate::run::remote::arrays::{JobNews, OpenArray, OpenBatch};
use crate::run::remote::decide::Decided;
use crate::run::remote::overview;
use crate::run::remote::pack::WaitingBatch;
use crate::run::remote::worker_log::BatchResult;
use crate::run::remote::{ExecutorError, PolledArray, Remote, RemoteError};
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::jobs::Submission;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::PoisonError;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// After this many unanswered polls, the user learns that the scheduler does not answer.
const SILENCE: u32 = 3;

/// A result whose files may not be visible yet.
pub(crate) struct Finished {
    pub(crate) index: usize,
    /// The positions of the array and of the job in it.
    pub(crate) place: (usize, usize),
    /// The process of the job.
    pub(crate) process: String,
    pub(crate) result: BatchResult,
    pub(crate) job: JobOfBatch,
    pub(crate) since: Stopwatch,
}

/// Jobs that could not be submitted.
pub(crate) struct RefusedJobs {
    /// How often in a row.
    pub(crate) tries: u32,
    /// Measures the time since the last try.
    pub(crate) since: Stopwatch,
    pub(crate) error: RemoteError,
}

/// Follows the jobs of a stage.
pub(crate) struct Driver<'a> {
    pub(crate) remote: &'a Remote<'a>,
    pub(crate) shared: StageThreads<'a>,
    pub(crate) sender: &'a Sender<Message>,
    /// Batches without a result, by their positions.
    pub(crate) open: BTreeMap<usize, OpenBatch>,
    /// Those of them that are in no job.
    pub(crate) waiting: VecDeque<WaitingBatch>,
    keys: BTreeMap<&'a str, usize>,
    pub(crate) arrays: Vec<OpenArray>,
    pub(crate) finished: Vec<Finished>,
    /// An array that the scheduler may have, although it did not say so. Its batches wait.
    pub(crate) unsure: Option<OpenArray>,
    /// Nodes whose disks were full.
    pub(crate) full_nodes: BTreeSet<String>,
    /// The last jobs, if they could not be submitted.
    pub(crate) refused: Option<RefusedJobs>,
    /// Measures the time since a log could not be read.
    unread: Option<Stopwatch>,
    /// Unanswered questions in a row.
    silence: u32,
    asked: Option<Stopwatch>,
    /// True if no further batch may begin.
    pub(crate) is_closing: bool,
}

/// Runs batches as jobs until all have a result, or the run is stopped. Returns the submissions that no later run needs.
pub(crate) fn drive<'a>(
    remote: &'a Remote<'a>,
    shared: StageThreads<'a>,
    sender: &'a Sender<Message>,
) -> Vec<Submission> {
    let keys = shared.order.indices.iter();
    let keys = keys.map(|&index| (shared.scan.batches[index].batch.key.as_str(), index));
    let mut driver = Driver {
        remote,
        shared,
        sender,
        open: BTreeMap::new(),
        waiting: VecDeque::new(),
        keys: keys.collect(),
        arrays: Vec::new(),
        finished: Vec::new(),
        unsure: None,
        full_nodes: BTreeSet::new(),
        refused: None,
        unread: None,
        silence: 0,
        asked: None,
        is_closing: false,
    };
    if let Err(error) = driver.run() {
        driver.leave();
        let redactor = shared.stage_ctx.ctx.redactor;
        let why = redactor.text(&error.to_string()).into_owned();
        let _ = sender.send(Message::Unavailable { why });
    }
    driver.end()
}

impl Driver<'_> {
    fn run(&mut self) -> Result<(), RemoteError> {
        let (startable, failed): (Vec<usize>, Vec<usize>) = self
            .shared
            .order
            .indices
            .iter()
            .partition(|&&index| self.shared.scan.batches[index].decision.is_ok());
        for index in failed {
            workers::run_one(self.shared, self.sender, 1, index);
        }
        self.open = startable
            .iter()
            .map(|&index| (index, OpenBatch::default()))
            .collect();
        self.take_over(&startable)?;
        let tick = (self.remote.settings.poll / 10)
            .clamp(Duration::from_millis(100), Duration::from_secs(1));
        loop {
            let read = self.read_logs();
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
            if self.shared.stage_ctx.stop.stopping() {
                self.stop();
                return Ok(());
            }
            if self
                .shared
                .stage_ctx
                .left()
                .is_some_and(|left| left.is_zero())
            {
                self.time_out();
                return Ok(());
            }
            if self.is_over() {
                // If the scheduler has it, it is followed; if it does not answer, the next run asks.
                let _ = self.look_for_unsure();
            }
            if self.is_over() {
                let is_left = !self.is_closing && !self.open.is_empty();
                let refused = self.refused.take().filter(|_| is_left);
                return refused.map_or(Ok(()), |refused| Err(refused.error));
            }
            if !self.is_closing {
                self.submit();
            }
            self.poll();
            match read {
                Ok(()) => {
                    self.unread = None;
                    self.settle();
                }
                // The logs cannot be read, so the end of a job decides nothing yet.
                Err(error) => {
                    let since = self.unread.get_or_insert_with(Stopwatch::start);
                    if since.elapsed() >= self.remote.settings.visible {
                        return Err(error);
                    }
                }
            }
            self.shared.stage_ctx.stop.wait(tick);
        }
    }

    /// Returns true if no batch can get a result any more.
    fn is_over(&self) -> bool {
        let is_ending = self.is_closing || self.is_refused();
        self.open.is_empty() || is_ending && self.finished.is_empty() && !self.has_jobs()
    }

    /// Returns whether no further batch may begin, and whether nothing receives results any more.
    pub(crate) fn closed(&self) -> (bool, bool) {
        let queue = self
            .shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (queue.closed, queue.is_abandoned)
    }

    pub(crate) fn has_jobs(&self) -> bool {
        self.arrays.iter().any(OpenArray::is_open)
    }

    /// Reads the logs of all processes.
    ///
    /// # Errors
    /// When a log cannot be read. The other logs are still read.
    pub(crate) fn read_logs(&mut self) -> Result<(), RemoteError> {
        let mut read = Ok(());
        for at in 0..self.arrays.len() {
            let (array, executor) = (&mut self.arrays[at], self.remote.executor);
            let mut news = Vec::new();
            if let Err(error) = array.news(executor, &mut news) {
                read = Err(error.into());
            }
            for news in news {
                self.hear(at, news);
            }
        }
        read
    }

    /// Takes news from a job of an array, if the batch is in no later job.
    fn hear(&mut self, array: usize, news: JobNews) {
        let index = self.position(&news.batch).filter(|index| {
            let job = &self.arrays[array].jobs[news.job];
            job.batches.contains(index)
        });
        let Some(index) = index else { return };
        let Some((result, job)) = news.done else {
            self.begin(index);
            return;
        };
        let decision = self.shared.scan.batches[index].decision.as_ref();
        let is_earlier = self.arrays[array].record.run != self.shared.stage_ctx.run_id;
        if result.is_known_failure(decision.ok(), &job) || is_earlier && result.met_full_disk() {
            self.take_out(index);
            self.again(index, false);
            return;
        }
        // The first record counts, also if a job runs twice.
        if !self.is_finished(index) {
            self.finished.push(Finished {
                index,
                place: (array, news.job),
                process: news.process,
                result: *result,
                job,
                since: Stopwatch::start(),
            });
        }
    }

    /// Returns true if there is a record of a batch, whose files may not be visible yet.
    pub(crate) fn is_finished(&self, index: usize) -> bool {
        self.finished.iter().any(|one| one.index == index)
    }

    /// Takes a batch out of its job.
    fn take_out(&mut self, index: usize) {
        for job in self.arrays.iter_mut().flat_map(|array| &mut array.jobs) {
            job.batches.retain(|&batch| batch != index);
        }
    }

    /// Returns the position of a batch that has no result yet.
    fn position(&self, key: &str) -> Option<usize> {
        let index = self.keys.get(key).copied();
        index.filter(|index| self.open.contains_key(index))
    }

    /// Reports that a batch begins, once.
    pub(crate) fn begin(&mut self, index: usize) {
        let Some(batch) = self.open.get_mut(&index) else {
            return;
        };
        if !std::mem::replace(&mut batch.was_begun, true) {
            let mut queue = self
                .shared
                .queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            queue.active.push(index);
            drop(queue);
            let _ = self.sender.send(Message::Begun { index });
        }
    }

    /// Returns what the jobs of the stage get.
    pub(crate) fn needs(&self) -> milepost_core::model::executor::Resources {
        let settings = &self.remote.settings.resources;
        self.shared.stage_ctx.stage.resources.or(settings)
    }

    /// Reports the result of a batch.
    pub(crate) fn finish(&mut self, index: usize, result: AttemptResult, took: Duration) {
        self.begin(index);
        self.open.remove(&index);
        self.waiting.retain(|batch| batch.index != index);
        self.take_out(index);
        workers::report(self.shared, self.sender, index, result, took);
    }

    /// Fails a batch.
    pub(crate) fn fail(&mut self, index: usize, outcome: Outcome) {
        let found = &self.shared.scan.batches[index];
        let result = attempt::fail(self.shared.stage_ctx, found, index as u64 + 1, outcome);
        self.finish(index, result, Duration::ZERO);
    }

    /// Gives a batch that failed another job, of its own; if no further batch may begin, it fails.
    pub(crate) fn retry(&mut self, index: usize, failed: Outcome) {
        if self.is_closing {
            return self.fail(index, failed);
        }
        self.begin(index);
        self.take_out(index);
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
            outcome: failed.for_record(self.shared.stage_ctx.ctx.redactor),
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

    pub(crate) fn warn(&self, error: &ExecutorError) {
        let redactor = self.shared.stage_ctx.ctx.redactor;
        let why = redactor.text(&error.to_string()).into_owned();
        let why = format!("the scheduler does not answer, its jobs may run: {why}");
        let _ = self.sender.send(Message::Waiting { why });
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
                decided.extend(
                    self.remote
                        .decide(array, number, self.shared.scan, &self.open),
                );
                let job = &mut array.jobs[number as usize];
                job.is_over = true;
                job.batches.clear();
            }
        }
        // A record that waits for its files decides its batch.
        decided.retain(|(index, _)| !self.is_finished(*index));
        if self.is_closing {
            let open = &self.open;
            decided.retain(|(index, _)| open.get(index).is_some_and(|batch| batch.was_begun));
        }
        for (index, consequence) in decided {
            match consequence {
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
}
