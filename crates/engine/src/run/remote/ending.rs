//! How a stage on a scheduler ends: after a failure, when the run is stopped, or when its time is over. What finished before is not
//! lost.

use crate::run::batch::events::Message;
use crate::run::batch::stage_context::AttemptResult;
use crate::run::remote::CancelledJobs;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::driver::Driver;
use crate::steps::attempt::stage_is_over;
use crate::steps::batch_context::cancelled;
use milepost_store::store::jobs::Submission;
use std::sync::PoisonError;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The pause between two looks for an answer or for files.
const LOOK: Duration = Duration::from_millis(200);

impl Driver<'_> {
    /// Lets no further batch begin: jobs end after their current batch.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
        let _ = self.look_for_unsure();
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
    pub(crate) fn stop(&mut self) {
        let _ = self.look_for_unsure();
        let open = self.arrays.iter().flat_map(|array| &array.jobs);
        let jobs = open.filter(|job| !job.is_over).count() as u64;
        let is_left = jobs == 0 || self.are_left(jobs);
        // The jobs continue while the user thinks.
        self.take_finished();
        if is_left {
            self.leave();
        } else {
            self.cancel_all();
            self.take_rest();
            self.let_go();
        }
    }

    /// Ends all batches, because the time of the stage is over.
    pub(crate) fn time_out(&mut self) {
        let _ = self.look_for_unsure();
        self.take_finished();
        self.cancel_all();
        self.take_rest();
        let open: Vec<usize> = self.open.keys().copied().collect();
        for index in open {
            self.fail(index, stage_is_over(self.shared.stage_ctx.stage, false));
        }
    }

    /// Leaves the jobs, and records whose files are not visible yet, to the next run.
    pub(crate) fn leave(&mut self) {
        for (at, array) in self.arrays.iter_mut().enumerate() {
            let mut finished = self.finished.iter();
            array.is_kept |= array.is_open() || finished.any(|one| one.place.0 == at);
        }
        self.let_go();
    }

    /// Takes over what is finished by now. A log that cannot be read is lost only if its jobs are cancelled.
    fn take_finished(&mut self) {
        let _ = self.read_logs();
        self.harvest();
    }

    /// Takes over what jobs that are cancelled have finished, and waits until its files are visible.
    fn take_rest(&mut self) {
        self.take_finished();
        while !self.finished.is_empty() {
            std::thread::sleep(LOOK);
            self.harvest();
        }
    }

    /// Asks the user whether this many jobs are left where they are.
    fn are_left(&self, jobs: u64) -> bool {
        let (reply, answer) = channel();
        let executor = self.remote.name;
        let question = Message::LeaveJobs {
            executor,
            jobs,
            reply,
        };
        if self.sender.send(question).is_err() {
            return true;
        }
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(is_left) => return is_left,
                // If the disk failed, the question does not reach the user.
                Err(RecvTimeoutError::Timeout) if !self.closed().1 => {}
                Err(_) => return true,
            }
        }
    }

    /// Reports the batches that began and have no result.
    fn let_go(&mut self) {
        let begun = self.open.iter().filter(|(_, batch)| batch.was_begun);
        let begun: Vec<usize> = begun.map(|(&index, _)| index).collect();
        for index in begun {
            let stopped = AttemptResult {
                result: Err(cancelled()),
                scratch: None,
                log: None,
            };
            self.finish(index, stopped, Duration::ZERO);
        }
    }

    fn cancel_all(&self) {
        for array in self.arrays.iter().filter(|array| OpenArray::is_open(array)) {
            if let Err(error) = self.remote.executor.cancel(&array.id, CancelledJobs::All) {
                self.warn(&error);
            }
        }
    }

    /// Returns the submissions that no later run needs, and leaves the batches that did not begin to the queue.
    pub(crate) fn end(self) -> Vec<Submission> {
        let mut queue = self
            .shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = self.open.iter().filter(|(_, batch)| !batch.was_begun);
        queue.waiting = left.map(|(&index, _)| index).collect();
        drop(queue);
        let arrays = self.arrays.into_iter().filter(|array| !array.is_kept);
        arrays.map(|array| array.submission).collect()
    }
}
