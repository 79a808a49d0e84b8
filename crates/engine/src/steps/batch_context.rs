//! The context of one attempt of one batch: names, files, agents and limits; and the traits that connect a step to the run.

use super::agent::handle::StageAgents;
use super::calls::{Calls, Pace, ProviderBatchUpdate};
use super::cancel::CancelToken;
use super::command::{StartedProcess, StopSignal};
use super::http::connection::{Client, Probe};
use super::worker::JqWorkers;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::base::source::{Sink, Source};
use milepost_core::expr::scope::Scope;
use milepost_core::model::call::{CallResponse, SentCall, Spent};
use milepost_core::model::event::Round;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{AnswersOf, FailedKeys};
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Step;
use milepost_store::check::schemas::Schemas;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cell::{Cell, LazyCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The files that an attempt writes.
pub(crate) trait OutputDir: Sync {
    /// Opens a file of an output or `out`. `star` fills the `*` of its path.
    ///
    /// # Errors
    /// When the file system fails.
    fn create(&self, out: &str, star: Option<&str>) -> io::Result<Box<dyn Sink>>;

    /// Returns the absolute path at which a program writes an output. The path of an output with `*` contains the star.
    ///
    /// # Errors
    /// When the file system fails.
    fn program_path(&self, out: &str) -> io::Result<PathBuf>;

    /// Writes a helper file for a program and returns its absolute path. The file is not an output.
    ///
    /// # Errors
    /// When the file system fails, or `name` is not a plain file name.
    fn write_helper(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf>;

    /// Sets the iteration whose files the outputs with `{{ iteration }}` name.
    fn set_iteration(&self, number: u32);

    /// Removes the files of an output or `out`, so that a retry starts without them.
    ///
    /// # Errors
    /// When the file system fails.
    fn clear(&self, out: &str) -> io::Result<()>;

    /// Returns the files that were written for an output or `out`, in natural order.
    ///
    /// # Errors
    /// When the file system fails, or a link or folder lies at the path of a file.
    fn written(&self, out: &str) -> io::Result<Vec<Arc<dyn Source>>>;
}

/// Saved iterations of `[refine]`, so that an interrupted batch continues after the last finished one.
pub(crate) trait IterationStore {
    /// Restores the files of the last finished iteration and returns the notes of all finished ones, oldest first.
    ///
    /// # Errors
    /// When the disk fails.
    fn resume(&self) -> Result<Vec<Value>, Outcome>;

    /// Saves the files up to this iteration durably, with a note.
    ///
    /// # Errors
    /// When the disk fails.
    fn keep(&self, number: u32, note: Value) -> Result<(), Outcome>;

    /// Returns the content of a saved file.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn content(&self, digest: Digest) -> Result<Vec<u8>, Outcome>;

    /// Notes that the loop has ended: if the batch fails, the next attempt starts with the first iteration.
    fn over(&self);
}

/// An event inside an attempt, for the journal.
pub(crate) enum StepEvent<'a> {
    /// A step starts, with the number of the iteration in a stage with `[refine]`. Later events belong to this step.
    Step(&'a Step, Option<u32>),
    /// A step wrote its output, with the number of the iteration and the result of its `summary`.
    Finished(&'a Step, Option<u32>, Option<Value>),
    /// An agent gave invalid answers.
    Refused {
        /// The number of the call.
        number: u64,
        /// How many of its answers are valid.
        valid: u64,
        /// The violations, one line each.
        violations: &'a [String],
    },
    /// An iteration was tested against `until` and `score`.
    Judged(Round),
    /// An iteration starts; the text describes the previous one.
    Revises(u32, &'a str),
}

/// Receives what happens during an attempt.
pub(crate) trait AttemptObserver: Sync {
    fn event(&self, event: StepEvent<'_>);
    /// A program was started.
    fn started(&self, child: &StartedProcess, program: &[String]);
    /// Returns true if a dry run shows the program that the batch would start.
    fn wants_plan(&self) -> bool {
        false
    }
    /// The batch would start this program.
    fn would_start(&self, _program: Vec<String>) {}
    /// A program printed something.
    fn printed(&self, _bytes: &[u8]) {}
    /// The program that printed has ended.
    fn printed_all(&self) {}
    fn called(&self, number: u64, sent: &SentCall, response: &CallResponse);
    /// Returns what the calls of the attempt cost so far.
    fn spent(&self) -> Spent {
        Spent::default()
    }
    /// A step failed and is retried after the wait.
    fn trying_again(&self, failed: u32, outcome: &Outcome, wait: Duration);
    /// The attempt waits.
    fn waiting(&self, _why: &str) {}
    /// A provider batch changed its state.
    fn provider_batch(&self, _update: ProviderBatchUpdate) {}
    /// Returns how many attempts run or are about to start: the most that can wait for one provider batch.
    fn running(&self) -> usize {
        usize::MAX
    }
}

/// The context of one attempt of one batch.
pub(crate) struct BatchContext<'a> {
    pub(crate) stage: &'a Stage,
    /// `classify/batch_1`, for messages.
    pub(crate) name: &'a str,
    /// The names that programs and templates see. Each step adds its `out`.
    pub(crate) scope: Scope,
    /// The names that every scope has, and the items of the batch. Few steps need them, and they name all files of the inputs.
    #[expect(clippy::type_complexity)]
    pub(crate) base: LazyCell<Map<String, Value>, Box<dyn FnOnce() -> Map<String, Value> + 'a>>,
    /// The time of the run.
    pub(crate) moment: Timestamp,
    pub(crate) outputs: &'a dyn OutputDir,
    pub(crate) iterations: &'a dyn IterationStore,
    /// The log of the attempt: output of programs and remarks of steps.
    pub(crate) log: &'a mut (dyn io::Write + Send),
    pub(crate) stop: &'a dyn StopSignal,
    /// Cancels the attempt. Reading and writing its files checks it.
    pub(crate) cancel: &'a Arc<CancelToken>,
    /// Evaluates the programs of the batch.
    pub(crate) jq: Rc<JqWorkers>,
    /// Returns the time that the stage has left; `None` if it has no limit.
    pub(crate) left: &'a (dyn Fn() -> Option<Duration> + Sync),
    /// Receives events during the attempt.
    pub(crate) observer: &'a dyn AttemptObserver,
    pub(crate) schemas: &'a Schemas,
    pub(crate) agents: &'a StageAgents,
    /// Known answers, the budget and the record of calls.
    pub(crate) calls: &'a dyn Calls,
    /// Only answers of these runs are used; `None`: all kept answers are used.
    pub(crate) asked_since: Option<&'a [String]>,
    pub(crate) client: &'a Client,
    /// The right to try again, after a service refused the connection.
    pub(crate) probe: Option<Probe>,
    /// Returns the digest of all facts of the batch.
    pub(crate) facts: &'a dyn Fn() -> String,
    /// The advice after a request that must not be sent twice; `None` until the attempt has sent one.
    pub(crate) sent: &'a Cell<Option<&'static str>>,
    /// The environment of every program; a step adds the variables that it declares.
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) declared_env: &'a BTreeMap<String, String>,
    /// The working folder of programs.
    pub(crate) folder: &'a Path,
    /// The absolute path of the project.
    pub(crate) project: &'a Path,
    /// The id of the attempt, in the environment of its programs.
    pub(crate) token: &'a str,
    /// Returns the file that the batch made last time for an output.
    pub(crate) previous: &'a dyn Fn(&str) -> Option<Arc<dyn Source>>,
    /// Finds a file that another process writes; `None` if it does not exist.
    pub(crate) find: &'a Find<'a>,
    pub(crate) limits: AttemptLimits,
    /// How many threads its work may use.
    pub(crate) threads: usize,
    /// True in a dry run, which simulates requests to agents: steps must not reach outside.
    pub(crate) is_dry_run: bool,
}

/// Finds a file that another process writes.
pub(crate) type Find<'a> = dyn Fn(&FilePath) -> Result<Option<Arc<dyn Source>>, Outcome> + 'a;

/// Limits of an attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AttemptLimits {
    /// The time between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// How long calls in flight may finish after the run is stopped.
    pub(crate) calls: Duration,
    /// The wait before the first retry.
    pub(crate) backoff: Duration,
    /// The most output of a program that is kept, in bytes.
    pub(crate) log_cap: u64,
    /// The interval at which `wait` looks for its file.
    pub(crate) poll: Duration,
    /// How long that file must be unchanged.
    pub(crate) stable: Duration,
    /// When provider batches are submitted and polled.
    pub(crate) pace: Pace,
}

/// The report of a step, besides its files.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct StepReport {
    /// The summary, unless the stage declares one.
    pub(crate) summary: Option<Value>,
    /// Warnings for people.
    pub(crate) warnings: Vec<String>,
    /// Elements that failed and are missing in the outputs.
    pub(crate) failed: Vec<FailedKeys>,
    /// The calls whose answers were used.
    pub(crate) answers: Vec<AnswersOf>,
    /// The files that its program read, by absolute paths.
    #[serde(default)]
    pub(crate) read: Vec<PathBuf>,
}

impl StepReport {
    /// Adds the report of a later step.
    pub(crate) fn add(&mut self, more: StepReport) {
        self.failed.extend(more.failed);
        for more in more.answers {
            more.add_to(&mut self.answers);
        }
        self.summary = more.summary.or(self.summary.take());
        self.warnings.extend(more.warnings);
        self.read.extend(more.read);
    }
}

/// The report of a step, or the outcome of its failure.
pub(crate) type StepResult = Result<StepReport, Outcome>;

/// Returns the outcome of an input or expression that is invalid.
pub(crate) fn parse_failure(error: impl std::fmt::Display) -> Outcome {
    Outcome::new(OutcomeKind::Parse, error.to_string())
}

/// Returns the outcome of a file that cannot be read.
pub(crate) fn input_failure(name: &str, error: impl std::fmt::Display) -> Outcome {
    Outcome::new(OutcomeKind::Input, format!("{name}: {error}"))
}

/// Returns the outcome of a file that cannot be written.
pub(crate) fn output_failure(name: &str, error: impl std::fmt::Display) -> Outcome {
    Outcome::new(
        OutcomeKind::Output,
        format!("cannot write `{name}`: {error}"),
    )
}

/// Returns the outcome of work that ends because the run is stopped.
pub(crate) fn cancelled() -> Outcome {
    Outcome::new(OutcomeKind::Cancelled, "the run was stopped")
}
