//! Executors: where the batches of a stage run, and what a job asks a scheduler for.

use crate::expr::place::listed;
use crate::expr::template::Template;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Where batches run: on the machine of the runner, or as jobs of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutorName(&'static str);

impl ExecutorName {
    /// The words in declarations and on the command line. Each but the first is a scheduler, with a table `[executor.WORD]`.
    pub const WORDS: &'static [&'static str] = &["local", "slurm", "command"];

    /// The machine of the runner.
    pub const LOCAL: Self = Self("local");

    /// Returns its word.
    pub fn word(self) -> &'static str {
        self.0
    }
}

impl Serialize for ExecutorName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for ExecutorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(debug_assertions)]
impl schemars::JsonSchema for ExecutorName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExecutorName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Where batches run: on the machine of the runner, or as jobs of a scheduler.",
            "enum": Self::WORDS,
        })
    }
}

impl fmt::Display for ExecutorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no executor.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{text}` is not an executor: expected {words}",
    text = .0,
    words = any_of(ExecutorName::WORDS)
)]
pub struct NoExecutor(String);

/// Returns words in quotes, the last after an "or".
fn any_of(words: &[&str]) -> String {
    let text = listed(words.iter().copied());
    match text.rsplit_once(", ") {
        Some((others, last)) => format!("{others} or {last}"),
        None => text,
    }
}

impl FromStr for ExecutorName {
    type Err = NoExecutor;

    fn from_str(text: &str) -> Result<Self, NoExecutor> {
        let found = Self::WORDS.iter().find(|&&word| word == text);
        found
            .map(|word| Self(word))
            .ok_or_else(|| NoExecutor(text.to_owned()))
    }
}

/// The executors of a project.
#[derive(Debug, Clone, Default)]
pub struct Executors {
    /// The settings of jobs by scheduler. A scheduler without an entry has no jobs.
    pub(crate) jobs: BTreeMap<ExecutorName, JobSettings>,
    /// The commands of `[executor.command]`.
    pub command: Option<CommandExecutor>,
}

impl Executors {
    /// Returns the settings of the jobs of an executor; `None` if it has no jobs, or is not declared.
    pub fn settings(&self, name: ExecutorName) -> Option<&JobSettings> {
        self.jobs.get(&name)
    }
}

/// The settings of all jobs of an executor, and how batches are packed into jobs.
#[derive(Debug, Clone)]
pub struct JobSettings {
    /// The texts of its table by key, such as `partition`, for the one scheduler that has them.
    pub texts: BTreeMap<&'static str, String>,
    /// The resources of a job whose stage declares none.
    pub resources: Resources,
    /// Lines of shell that run before the batches of a job.
    pub setup: Vec<String>,
    /// More options for the command that submits.
    pub options: Vec<String>,
    /// The most batches of a job.
    pub batches_per_job: u64,
    /// The most jobs that run at once.
    pub max_jobs: u64,
    /// The most jobs in one array.
    pub max_array_size: u64,
    /// The time between two polls of the scheduler.
    pub poll: Duration,
    /// How long a file that another node wrote may stay invisible.
    pub visible: Duration,
    /// The program on the nodes; `None`: the path of this one.
    pub program: Option<String>,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            texts: BTreeMap::new(),
            resources: Resources::default(),
            setup: Vec::new(),
            options: Vec::new(),
            batches_per_job: 100,
            max_jobs: 100,
            max_array_size: 1000,
            poll: Duration::from_secs(10),
            visible: Duration::from_mins(1),
            program: None,
        }
    }
}

/// `[executor.command]`: a scheduler by three commands, which run by `sh -c`.
#[derive(Debug, Clone)]
pub struct CommandExecutor {
    /// Submits an array of jobs, and prints its id as the last word.
    pub submit: Arc<Template>,
    /// Prints a line for each job: the id of its array, its index, its state, and its node or reason.
    pub poll: Arc<Template>,
    /// Cancels an array of jobs.
    pub cancel: Arc<Template>,
    /// Prints the id of the array of a name, or nothing; `None`: an array is known by its id only.
    pub find: Option<Arc<Template>>,
    /// The environment variable that holds the index of a job in its array.
    pub index: String,
}

/// The resources that a job requests from its scheduler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    pub cpus: Option<u64>,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// The time limit.
    pub time: Option<Duration>,
    /// The increase for a job that hit its limits; `None`: its batch fails.
    pub retry: Option<MoreResources>,
}

/// How much more a job gets after each failure by a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoreResources {
    /// The factor of the memory, after a lack of memory; 1: no further attempt.
    pub memory: f64,
    /// The factor of the time limit, after a timeout; 1: no further attempt.
    pub time: f64,
    /// The most further attempts.
    pub attempts: u32,
}

impl Resources {
    /// Returns these, and those of the project where a stage declares none.
    #[must_use]
    pub fn or(&self, project: &Self) -> Self {
        Self {
            cpus: self.cpus.or(project.cpus),
            memory: self.memory.or(project.memory),
            time: self.time.or(project.time),
            retry: self.retry.or(project.retry),
        }
    }

    /// Returns the resources of a job after this many failures by lack of memory and by timeouts.
    #[must_use]
    pub fn after(&self, lacked_memory: u32, timed_out: u32) -> Self {
        let Some(more) = self.retry else {
            return self.clone();
        };
        let times = |factor: f64, failures: u32| factor.powi(failures.cast_signed());
        let memory = times(more.memory, lacked_memory);
        let time = times(more.time, timed_out);
        Self {
            memory: self.memory.map(|bytes| (bytes as f64 * memory) as u64),
            time: self.time.map(|limit| limit.mul_f64(time)),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_wins_over_the_project_and_limits_grow() {
        let project = Resources {
            cpus: Some(1),
            memory: Some(1000),
            time: Some(Duration::from_mins(1)),
            retry: None,
        };
        let stage = Resources {
            memory: Some(500),
            retry: Some(MoreResources {
                memory: 2.0,
                time: 1.5,
                attempts: 2,
            }),
            ..Resources::default()
        };
        let both = stage.or(&project);
        assert_eq!((both.cpus, both.memory), (Some(1), Some(500)));
        let more = both.after(2, 1);
        assert_eq!(more.memory, Some(2000));
        assert_eq!(more.time, Some(Duration::from_secs(90)));
        assert_eq!(project.after(3, 3), project);
    }

    #[test]
    fn names_are_words() {
        for word in ExecutorName::WORDS {
            assert_eq!(word.parse::<ExecutorName>().unwrap().word(), *word);
        }
        let error = "pbs".parse::<ExecutorName>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`pbs` is not an executor: expected `local`, `slurm` or `command`"
        );
    }
}
