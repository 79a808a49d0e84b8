//! Batches as jobs of a scheduler: what a scheduler must be able to do, and the runner's and the nodes' side of it.
//!
//! The runner writes the batches of a stage into a submission (`.milepost/jobs`), and asks the scheduler for an array of jobs. Each
//! job is this program (`worker`): it runs its batches in folders of its own, validates them there, and appends a record of
//! each to its log. The runner (`driver`) reads the logs, adopts the folders of finished batches, and commits them as if they
//! had run here. A batch of which two logs have a record is committed once.
//!
//! # Protocol
//!
//! - **Submission.** The runner writes the scans of the batches, the values of parameters and the id of the shared facts into
//!   `.milepost/jobs/ID`, and its script. It writes `job.json` before it submits the array, and the scheduler's `id` after it.
//!   If a kill comes between, the next run asks the scheduler for the array by its name. The run itself asks so after a
//!   submission without a readable answer, and submits nothing else before it has one. The first job of an array writes `id`,
//!   too, if the scheduler tells it (Slurm).
//! - **On a node** the program waits until it sees its submission and declarations with the same shared facts, and, before each
//!   batch, inputs with the digests that the runner saw. It runs the batch in a folder of its own, validates and hashes the
//!   outputs, flushes them, and then appends the record to the log of its process, a file of checksummed lines. It takes no
//!   lock, and writes nothing outside the submission but logs of programs.
//! - **Adoption.** The runner adopts the folder of a recorded batch as its scratch if the record names that folder, files that
//!   the batch makes, and their digests. From there the usual commit follows. The first record of a batch counts. Each process
//!   has a log and folders of its own, so a job that runs twice never writes a file twice, and an old script that continues
//!   writes to a folder that the run does not read.
//! - **After a kill** the next run reads all submissions. A batch counts as in a job if key, facts, shared facts and version
//!   are the same. The run cancels and removes submissions without such batches. If several have a batch, it belongs to the
//!   last. A failure that the journal already has is not recorded again: the batch runs.
//! - **The end of a job** means nothing for batches with a record. For the others, `outcomes` decides by a table: only the
//!   batch that a process was at can be at fault.
//!
//! # A new scheduler
//!
//! One file in `schedulers` implements [`Executor`]. Three entries make it known: its word in `ExecutorName::WORDS`, the table
//! of its keys in `EXECUTOR` (`decl/keys/executor.rs`), and a line in `SCHEDULERS`. Command line, declarations, schemas,
//! reference and messages follow from them, and two tests compare the entries.

pub(crate) mod arrays;
pub(crate) mod attach;
pub(crate) mod decide;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod handover;
pub(crate) mod harvest;
pub(crate) mod outcomes;
pub(crate) mod overview;
pub(crate) mod pack;
pub(crate) mod schedulers;
pub(crate) mod submit;
pub(crate) mod sweep;
pub(crate) mod worker;
pub(crate) mod worker_log;

use crate::run::error::RunError;
use milepost_core::model::executor::{ExecutorName, JobSettings, Resources};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A scheduler. One file for each: its commands, and the words that they print.
pub(crate) trait Executor: Sync {
    /// Submits an array of jobs, and returns its id.
    ///
    /// # Errors
    /// When the scheduler refuses it or does not answer. It may have the array nevertheless.
    fn submit(&self, array: &JobArray) -> Result<String, ExecutorError>;

    /// Returns the states of these jobs, by array and index. A job that is missing has ended, perhaps long ago: only its log
    /// tells how.
    ///
    /// # Errors
    /// When the scheduler does not answer: nothing is known.
    fn poll(&self, arrays: &[PolledArray]) -> Result<JobStates, ExecutorError>;

    /// Cancels the jobs of an array.
    ///
    /// # Errors
    /// When the scheduler does not answer.
    fn cancel(&self, array: &str, which: CancelledJobs) -> Result<(), ExecutorError>;

    /// Returns the id of the array that was submitted under this name; `None` if the scheduler has none, or cannot tell.
    ///
    /// # Errors
    /// When the scheduler does not answer.
    fn find(&self, name: &str) -> Result<Option<String>, ExecutorError>;

    /// Returns true if `find` can tell.
    fn can_find(&self) -> bool {
        true
    }

    /// Returns how a job ended by the last lines that it printed, if the scheduler writes that there.
    fn end_by_output(&self, _printed: &[String]) -> Option<JobEnd> {
        None
    }

    /// Returns the environment variable in which a job finds its index.
    fn index_variable(&self) -> &str;

    /// Returns the environment variable in which a job finds the id of its array, if there is one.
    fn array_variable(&self) -> Option<&'static str> {
        None
    }

    /// Describes a job for people: its array, its index.
    fn describe(&self, array: &str, index: u64) -> String;
}

/// The executor of a stage, and how its batches become jobs.
pub(crate) struct Remote<'a> {
    pub(crate) name: ExecutorName,
    pub(crate) executor: &'a dyn Executor,
    pub(crate) settings: &'a JobSettings,
    /// The program on the nodes.
    pub(crate) program: String,
    /// The most jobs that run at once.
    pub(crate) at_once: u64,
}

/// The states of jobs, by array and index.
pub(crate) type JobStates = BTreeMap<(String, u64), JobState>;

/// An array of jobs to submit: they run one script, each with its index, from 0.
#[derive(Debug, Clone)]
pub(crate) struct JobArray {
    /// The name, which no other submission has.
    pub(crate) name: String,
    /// The script, which reads its index from the environment variable of the scheduler.
    pub(crate) script: PathBuf,
    /// The folder for what the jobs print.
    pub(crate) output: PathBuf,
    /// The number of jobs, at least 1.
    pub(crate) jobs: u64,
    /// The most that run at once.
    pub(crate) at_once: u64,
    /// The resources of each job.
    pub(crate) resources: Resources,
    /// Nodes that lacked something, which the scheduler avoids if it can.
    pub(crate) avoided: Vec<String>,
}

/// An array whose jobs have not all ended.
#[derive(Debug, Clone)]
pub(crate) struct PolledArray {
    /// The scheduler's id.
    pub(crate) id: String,
    /// The indices of the jobs that have not ended.
    pub(crate) jobs: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It waits, for a reason in the scheduler's words.
    Queued(String),
    /// It runs on a node.
    Running(String),
    /// It has ended.
    Ended(JobEnd),
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobEnd {
    /// The script ended with exit code 0.
    Done,
    /// The script failed, or the scheduler reports no reason.
    Failed,
    /// It exceeded its time limit.
    TimedOut,
    /// It ran out of memory.
    OutOfMemory,
    NodeFailed,
    /// A person or the scheduler cancelled it.
    Cancelled,
    /// The scheduler needed its node for another job.
    Preempted,
}

/// The jobs of an array to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelledJobs {
    All,
    /// Those that have not started, if the scheduler can tell them apart.
    Queued,
}

/// A scheduler refused, failed or did not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ExecutorError {
    /// A command cannot be started or rendered.
    #[error("`{command}`: {why}")]
    Command { command: String, why: String },
    /// A command failed.
    #[error("`{command}` failed: {printed}")]
    Failed {
        command: String,
        /// The output in one line.
        printed: String,
    },
    /// A command failed, and will fail again: only another declaration helps.
    #[error("`{command}` failed: {printed}: {help}")]
    Refused {
        command: String,
        /// The output in one line.
        printed: String,
        help: &'static str,
    },
    /// A command did not end by itself: what it did is not known.
    #[error("`{command}` did not answer: {why}")]
    Unanswered {
        command: String,
        /// How it ended.
        why: String,
    },
    /// A command printed something else than expected.
    #[error("`{command}` printed {printed:?}, expected {expected}")]
    Printed {
        command: String,
        /// The output in one line.
        printed: String,
        expected: &'static str,
    },
    /// The run is stopped.
    #[error("the run is stopped")]
    Stopped,
}

/// Why batches cannot run as jobs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The scheduler refused.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The scheduler may have the array, but cannot look it up by name.
    #[error(
        "{error}; the jobs `{name}` may be submitted: cancel them, then run again (with `find` under [executor.command], Milepost finds them)"
    )]
    Unsure {
        /// The name of the array.
        name: String,
        /// The error of its submission.
        error: ExecutorError,
    },
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// A file of a submission cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A log cannot be read.
    #[error("cannot read the logs of jobs: {0}")]
    Log(#[from] std::io::Error),
}

impl RemoteError {
    /// Returns true if the jobs must not be submitted again: the scheduler will refuse them, or may have them.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Executor(ExecutorError::Refused { .. }) | Self::Unsure { .. }
        )
    }
}
