//! The arrays of jobs that are open: their states, and what the logs of their processes say.

use crate::run::remote::handover::SubmissionRecord;
use crate::run::remote::pack::LimitFailures;
use crate::run::remote::worker_log::{BatchResult, WorkerEvent};
use crate::run::remote::{Executor, JobEnd, JobState, JobStates, PolledArray};
use jiff::Timestamp;
use milepost_core::model::executor::Resources;
use milepost_core::model::job::JobOfBatch;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::jobs::Submission;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// How often in a row the scheduler must not know a job until it counts as ended.
const MISSES: u32 = 2;

/// How long the log of an ended job may grow after the scheduler says that it has ended, if the log is visible at all.
const LINGERS: Duration = Duration::from_secs(2);

/// An array of jobs.
pub(crate) struct OpenArray {
    pub(crate) submission: Submission,
    pub(crate) record: SubmissionRecord,
    /// The scheduler's id.
    pub(crate) id: String,
    /// The resources of each job.
    pub(crate) needs: Resources,
    pub(crate) jobs: Vec<OpenJob>,
    /// True if a later run may need records of it.
    pub(crate) is_kept: bool,
    /// True if its id is unknown, because the run was killed before it recorded it.
    pub(crate) is_unknown: bool,
    /// How far the log of each process was read.
    places: BTreeMap<String, u64>,
}

#[derive(Default)]
pub(crate) struct OpenJob {
    /// The positions of its batches without a record.
    pub(crate) batches: Vec<usize>,
    /// The positions of all batches that it was handed; `None` for one that this run does not want from it.
    pub(crate) handed: Vec<Option<usize>>,
    /// The last known state.
    pub(crate) state: Option<JobState>,
    /// How often in a row the scheduler did not know it.
    misses: u32,
    pub(crate) processes: BTreeMap<String, JobProcess>,
    /// Measures the time since it was seen to have ended.
    ended: Option<Stopwatch>,
    /// True if nothing more is expected of it.
    pub(crate) is_over: bool,
}

/// A process of a job. A job that the scheduler runs again has several.
#[derive(Default)]
pub(crate) struct JobProcess {
    pub(crate) node: String,
    pub(crate) started: Option<Timestamp>,
    /// The batch that it runs.
    pub(crate) current: Option<String>,
    /// How many batches it has finished.
    pub(crate) finished: u64,
}

/// A batch that has no result yet.
#[derive(Default)]
pub(crate) struct OpenBatch {
    pub(crate) failures: LimitFailures,
    pub(crate) losses: u32,
    /// How many of its attempts failed in this run.
    pub(crate) failed: u32,
    pub(crate) was_begun: bool,
}

/// News from the log of a process.
pub(crate) struct JobNews {
    /// The index of the job.
    pub(crate) job: usize,
    pub(crate) process: String,
    pub(crate) batch: String,
    /// The record of the finished batch; `None` if the batch begins.
    pub(crate) done: Option<(Box<BatchResult>, JobOfBatch)>,
}

impl OpenArray {
    pub(crate) fn new(
        submission: Submission,
        record: SubmissionRecord,
        id: String,
        needs: Resources,
        jobs: Vec<Vec<Option<usize>>>,
    ) -> Self {
        let job = |handed: Vec<Option<usize>>| OpenJob {
            batches: handed.iter().copied().flatten().collect(),
            handed,
            ..OpenJob::default()
        };
        Self {
            submission,
            record,
            id,
            needs,
            jobs: jobs.into_iter().map(job).collect(),
            is_kept: false,
            is_unknown: false,
            places: BTreeMap::new(),
        }
    }

    /// Returns true if a job of it may still run.
    pub(crate) fn is_open(&self) -> bool {
        self.jobs.iter().any(|job| !job.is_over)
    }

    /// Returns the array and the jobs to poll.
    pub(crate) fn polled(&self) -> PolledArray {
        let jobs = (0..).zip(&self.jobs).filter(|(_, job)| !job.is_over);
        PolledArray {
            id: self.id.clone(),
            jobs: jobs.map(|(number, _)| number).collect(),
        }
    }

    /// Adds what its processes logged since the last call.
    ///
    /// # Errors
    /// When a log cannot be read. The others are read.
    pub(crate) fn news(
        &mut self,
        executor: &dyn Executor,
        news: &mut Vec<JobNews>,
    ) -> io::Result<()> {
        let mut read = Ok(());
        if !self.is_open() {
            return read;
        }
        for process in self.submission.processes()? {
            let number = process.split('.').next();
            let number = number.and_then(|text| text.parse::<usize>().ok());
            let Some(number) = number else { continue };
            let Some(job) = self.jobs.get_mut(number) else {
                continue;
            };
            if job.is_over {
                continue;
            }
            let from = self.places.get(&process).copied().unwrap_or(0);
            let (lines, place) = match self.submission.lines(&process, from) {
                Ok(found) => found,
                // The name is known before the file is visible.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    read = Err(error);
                    continue;
                }
            };
            self.places.insert(process.clone(), place);
            let name = executor.describe(&self.id, number as u64);
            let known = job.processes.entry(process.clone()).or_default();
            for line in lines {
                let Ok(event) = serde_json::from_str(&line) else {
                    continue;
                };
                let found = known.take(event, &self.record, &name);
                news.extend(found.map(|(batch, done)| JobNews {
                    job: number,
                    process: process.clone(),
                    batch,
                    done,
                }));
            }
        }
        read
    }

    /// Takes the states that the scheduler knows.
    pub(crate) fn take_states(&mut self, states: &JobStates) {
        for (number, job) in self.jobs.iter_mut().enumerate() {
            if job.is_over {
                continue;
            }
            match states.get(&(self.id.clone(), number as u64)) {
                Some(state) => {
                    job.misses = 0;
                    // The first end counts: a job that could not be started is cancelled then.
                    let is_known = matches!(job.state, Some(JobState::Ended(_)));
                    if !is_known || !matches!(state, JobState::Ended(_)) {
                        job.state = Some(state.clone());
                    }
                }
                None => job.misses += 1,
            }
            let has_ended = matches!(job.state, Some(JobState::Ended(_))) || job.misses >= MISSES;
            if !has_ended {
                job.ended = None;
            } else if job.ended.is_none() {
                job.ended = Some(Stopwatch::start());
                self.submission.refresh();
            }
        }
    }

    /// Returns the exit code of the script of a job, if the script could note it.
    pub(crate) fn exit_code(&self, number: u64) -> Option<i32> {
        let bytes = self
            .submission
            .read(&["output", &format!("{number}.exit")])
            .ok()??;
        String::from_utf8_lossy(&bytes).trim().parse().ok()
    }

    /// Returns the last lines that a job printed.
    pub(crate) fn printed(&self, number: u64) -> Vec<String> {
        const LINES: usize = 5;
        let bytes = self.submission.read(&["output", &format!("{number}.txt")]);
        let bytes = bytes.ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        last.iter().map(|&line| line.to_owned()).collect()
    }
}

impl OpenJob {
    /// Returns true if no further record of it is expected. `visible` is how long a file may stay invisible.
    pub(crate) fn has_settled(&self, visible: Duration) -> bool {
        let limit = if self.processes.is_empty() {
            visible
        } else {
            visible.min(LINGERS)
        };
        self.ended
            .as_ref()
            .is_some_and(|since| since.elapsed() >= limit)
    }

    /// Returns true if the scheduler says that it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns how it ended; `None` if the scheduler does not know.
    pub(crate) fn end(&self) -> Option<JobEnd> {
        match &self.state {
            Some(JobState::Ended(end)) => Some(*end),
            _ => None,
        }
    }

    /// Returns the last process that began this batch and did not finish it.
    pub(crate) fn process_at(&self, batch: &str) -> Option<&JobProcess> {
        let mut processes = self.processes.values();
        processes.rfind(|process| process.current.as_deref() == Some(batch))
    }
}

impl JobProcess {
    /// Takes an event. Returns the batch that begins or is finished, with its record.
    #[expect(clippy::type_complexity)]
    fn take(
        &mut self,
        event: WorkerEvent,
        record: &SubmissionRecord,
        job: &str,
    ) -> Option<(String, Option<(Box<BatchResult>, JobOfBatch)>)> {
        match event {
            WorkerEvent::Started { node, at } => {
                self.node = node;
                self.started = Some(at);
                None
            }
            WorkerEvent::Begun { batch } => {
                self.current = Some(batch.clone());
                Some((batch, None))
            }
            WorkerEvent::Done(result) => {
                self.current = None;
                self.finished += 1;
                let waited = self.started.map(|at| at.duration_since(record.submitted));
                let waited = waited.map_or(0, |waited| waited.as_millis());
                let job = JobOfBatch {
                    executor: record.executor,
                    job: job.to_owned(),
                    node: self.node.clone(),
                    // The clocks of two machines may differ.
                    queued_ms: u64::try_from(waited).unwrap_or(0),
                };
                Some((result.batch.clone(), Some((result, job))))
            }
            WorkerEvent::Ended => None,
        }
    }
}
