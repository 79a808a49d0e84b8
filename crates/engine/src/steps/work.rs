//! What one attempt of one batch works with: its names, its files, its limits.

use super::agent::ready::Answerers;
use super::alarm::Alarm;
use super::calls::{Calls, Pace, ProviderBatchUpdate};
use super::command::{Started, Stop};
use jiff::Timestamp;
use milepost_agents::http::SharedHttp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::base::source::{Sink, Source};
use milepost_core::expr::scope::Scope;
use milepost_core::model::call::{Heard, Sent};
use milepost_core::model::event::Round;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{AnswersOf, FailedKeys};
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Step;
use milepost_store::check::schemas::Schemas;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The files that an attempt writes.
pub(crate) trait Outs {
    /// Opens a file of an output or `out`. `star` fills the `*` of its path.
    ///
    /// # Errors
    /// What the file system says.
    fn create(&self, out: &str, star: Option<&str>) -> io::Result<Box<dyn Sink>>;

    /// Where a program writes an output itself, absolute; of an output with `*` the path still holds the star.
    ///
    /// # Errors
    /// What the file system says.
    fn place(&self, out: &str) -> io::Result<PathBuf>;

    /// Writes a file for a program, beside the outputs and none of them, and gives where it lies, absolute.
    ///
    /// # Errors
    /// What the file system says; a name that is no plain name is an error.
    fn beside(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf>;

    /// From here on outputs that there are of each round are those of this one.
    fn round(&self, number: u32);

    /// Takes away what a failed try wrote, so that the next begins with nothing.
    ///
    /// # Errors
    /// What the file system says.
    fn clear(&self, out: &str) -> io::Result<()>;

    /// The files of an output or `out` that were written, in natural order.
    ///
    /// # Errors
    /// What the file system says; a link or another thing that is no file is an error.
    fn made(&self, out: &str) -> io::Result<Vec<Arc<dyn Source>>>;
}

/// Rounds of `[refine]` that are finished: kept, so that a run that is killed goes on after the last of them.
pub(crate) trait Rounds {
    /// What was noted of each round that an earlier run finished, the first one first; the files are as the last one left them.
    ///
    /// # Errors
    /// What the disk says.
    fn resume(&self) -> Result<Vec<Value>, Outcome>;

    /// Keeps what has been made up to this round, durably, with a note of it.
    ///
    /// # Errors
    /// What the disk says.
    fn keep(&self, number: u32, note: Value) -> Result<(), Outcome>;

    /// The bytes of a file that is kept.
    ///
    /// # Errors
    /// When it cannot be read.
    fn content(&self, digest: Digest) -> Result<Vec<u8>, Outcome>;

    /// No round follows: should the batch fail, the next attempt begins with the first.
    fn over(&self);
}

/// What an attempt says of its way, for whoever wants to know who did what.
pub(crate) enum Told<'a> {
    /// A step begins, in the round of this number where there are rounds. What follows is its doing.
    Step(&'a Step, Option<u32>),
    /// What an agent answered was not all valid.
    Refused {
        /// The call.
        number: u64,
        /// Valid answers in it.
        valid: u64,
        /// What is wrong.
        violations: &'a [String],
    },
    /// A round was judged.
    Judged(Round),
    /// A round begins, since the one before was so.
    Revises(u32, &'a str),
}

/// Told while an attempt goes on.
pub(crate) trait Watcher {
    /// Something of its way.
    fn told(&self, told: Told<'_>);
    /// A program was started.
    fn started(&self, child: &Started);
    /// An agent was called.
    fn called(&self, number: u64, sent: &Sent, heard: &Heard);
    /// A try failed and another follows after the wait.
    fn trying_again(&self, failed: u32, outcome: &Outcome, wait: Duration);
    /// A provider batch changed its state.
    fn provider_batch(&self, _update: ProviderBatchUpdate) {}
    /// How many attempts run now or are about to: no more than that can wait for one thing.
    fn running(&self) -> usize {
        usize::MAX
    }
}

/// What one attempt of one batch works with.
pub(crate) struct Work<'a> {
    /// The stage.
    pub(crate) stage: &'a Stage,
    /// `classify/batch_1`, for messages.
    pub(crate) name: &'a str,
    /// The names that programs and templates see. Grows by what steps make.
    pub(crate) scope: Scope,
    /// The names that every scope has, and the batch's items: plain values.
    pub(crate) base: Map<String, Value>,
    /// The moment that files bear.
    pub(crate) moment: Timestamp,
    /// The files that are written.
    pub(crate) outs: &'a dyn Outs,
    /// Its rounds that are finished.
    pub(crate) rounds: &'a dyn Rounds,
    /// What programs print, and what steps have to say.
    pub(crate) log: &'a mut (dyn io::Write + Send),
    /// Whether the run is being stopped.
    pub(crate) stop: &'a dyn Stop,
    /// Rings when the attempt must end; its files look at it.
    pub(crate) alarm: &'a Arc<Alarm>,
    /// What is left of the stage's time; none: it has no limit.
    pub(crate) left: &'a dyn Fn() -> Option<Duration>,
    /// Told while it goes on.
    pub(crate) watcher: &'a dyn Watcher,
    /// The schemas of the project.
    pub(crate) schemas: &'a Schemas,
    /// The agents that the stage asks.
    pub(crate) agents: &'a Answerers,
    /// What stands behind those that cost something.
    pub(crate) calls: &'a dyn Calls,
    /// The runs whose answers of agents alone count; `None`: every answer that is kept counts.
    pub(crate) asked_since: Option<&'a [String]>,
    /// The HTTP client of the run.
    pub(crate) http: &'a SharedHttp,
    /// The environment of programs: the usual, without what a step declares.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Declared environment variables with their values.
    pub(crate) declared_env: &'a BTreeMap<String, String>,
    /// The folder that programs work in.
    pub(crate) folder: &'a Path,
    /// The project's folder, absolute.
    pub(crate) project: &'a Path,
    /// Names an attempt in the environment of its programs.
    pub(crate) token: &'a str,
    /// What the batch made last time, by the output's name.
    pub(crate) previous: &'a dyn Fn(&str) -> Option<Arc<dyn Source>>,
    /// A file that someone else writes; none: it is not there.
    pub(crate) find: &'a Find<'a>,
    /// Limits.
    pub(crate) limits: Limits,
    /// Whether it is only tried out what would be asked of agents: no step may reach outside.
    pub(crate) is_rehearsed: bool,
}

/// Looks for a file that someone else writes.
pub(crate) type Find<'a> = dyn Fn(&FilePath) -> Result<Option<Arc<dyn Source>>, Outcome> + 'a;

/// Limits of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long a program gets to end after SIGTERM.
    pub(crate) grace: Duration,
    /// The wait after a first failed try.
    pub(crate) backoff: Duration,
    /// Output of programs that is kept, in bytes.
    pub(crate) log_cap: u64,
    /// How often a file that someone else writes is looked for.
    pub(crate) poll: Duration,
    /// How long such a file must have been left alone.
    pub(crate) stable: Duration,
    /// When batches of requests are submitted and looked after.
    pub(crate) pace: Pace,
}

/// What a step has to say of what it made.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Said {
    /// A summary, when the stage declares none.
    pub(crate) summary: Option<Value>,
    /// Warnings for people.
    pub(crate) warnings: Vec<String>,
    /// Elements that failed, and are not among what was made.
    pub(crate) failed: Vec<FailedKeys>,
    /// The calls of agents whose answers it was made from.
    pub(crate) answers: Vec<AnswersOf>,
}

impl Said {
    /// Takes in what was said after it.
    pub(crate) fn add(&mut self, more: Said) {
        self.failed.extend(more.failed);
        for more in more.answers {
            more.add_to(&mut self.answers);
        }
        self.summary = more.summary.or(self.summary.take());
        self.warnings.extend(more.warnings);
    }
}

/// A failed step is an outcome.
pub(crate) type StepResult = Result<Said, Outcome>;

/// An input, an expression or a file that a step could not make sense of.
pub(crate) fn parse_failure(error: impl std::fmt::Display) -> Outcome {
    Outcome::new(OutcomeKind::Parse, error.to_string())
}

/// A file that could not be read.
pub(crate) fn input_failure(name: &str, error: impl std::fmt::Display) -> Outcome {
    Outcome::new(OutcomeKind::Input, format!("{name}: {error}"))
}

/// A file that could not be written.
pub(crate) fn output_failure(name: &str, error: impl std::fmt::Display) -> Outcome {
    Outcome::new(
        OutcomeKind::Output,
        format!("cannot write `{name}`: {error}"),
    )
}
