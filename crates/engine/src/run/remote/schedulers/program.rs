//! Runs a command of a scheduler, and returns what it printed.

use crate::run::remote::ExecutorError;
use crate::steps::command::{CommandSpec, Exit, StopSignal, run_command};
use milepost_core::base::redact::{Redactor, names_key};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

/// How long a command of a scheduler may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The most output of such a command, in bytes: a line for each of a million jobs.
const MOST: u64 = 256 << 20;

/// The most bytes of its standard error that are kept.
const MOST_WARNINGS: u64 = 1 << 20;

/// Runs the commands of a scheduler.
pub(crate) struct SchedulerCommands<'a> {
    /// The environment of the runner, which configures the scheduler's commands.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The declared variables, which jobs need.
    pub(crate) declared: &'a BTreeMap<String, String>,
    /// The variables with keys of agents.
    pub(crate) keys: BTreeSet<&'a str>,
    pub(crate) redactor: &'a Redactor,
    /// The working folder, the project.
    pub(crate) folder: &'a Path,
}

/// A signal that never comes: cancelling jobs must end even while the run is stopped.
struct NeverStops;

impl StopSignal for NeverStops {
    fn stopping(&self) -> bool {
        false
    }

    fn wait(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

impl SchedulerCommands<'_> {
    /// Returns false for a variable that holds a key, unless it is declared, or jobs that need these `keys` need it.
    pub(crate) fn is_for_jobs(&self, keys: &[String], name: &str, value: &str) -> bool {
        let is_key = names_key(name) || matches!(self.redactor.text(value), Cow::Owned(_));
        self.is_for_command(keys, name) && (!is_key || self.needs(keys, name))
    }

    /// Returns false for a variable with the key of an agent, unless it is declared, or jobs that need these `keys` need it.
    pub(crate) fn is_for_command(&self, keys: &[String], name: &str) -> bool {
        !self.keys.contains(name) || self.needs(keys, name)
    }

    fn needs(&self, keys: &[String], name: &str) -> bool {
        self.declared.contains_key(name) || keys.iter().any(|key| key == name)
    }

    /// Runs a program with arguments, and returns its standard output: warnings in its standard error are no answers.
    ///
    /// # Errors
    /// When it cannot be started, fails, or does not end.
    pub(crate) fn run(&self, words: &[String]) -> Result<String, ExecutorError> {
        self.run_with(words, &|_, _| true)
    }

    /// Runs a program with those environment variables for which `is_passed` holds, by name and value.
    ///
    /// # Errors
    /// When it cannot be started, fails, or does not end.
    pub(crate) fn run_with(
        &self,
        words: &[String],
        is_passed: &dyn Fn(&str, &str) -> bool,
    ) -> Result<String, ExecutorError> {
        let command = words.first().cloned().unwrap_or_default();
        let environment: Vec<(String, String)> = self
            .environment
            .iter()
            .filter(|(name, value)| is_passed(name, value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let unstarted = |error: &dyn Error| ExecutorError::Command {
            command: command.clone(),
            why: error.to_string(),
        };
        let (mut warnings, writer) = std::io::pipe().map_err(|error| unstarted(&error))?;
        // The command must not wait for a full pipe.
        let warnings = std::thread::spawn(move || {
            let mut first = Vec::new();
            let _ = (&mut warnings).take(MOST_WARNINGS).read_to_end(&mut first);
            let _ = std::io::copy(&mut warnings, &mut std::io::sink());
            String::from_utf8_lossy(&first).into_owned()
        });
        let mut printed = Vec::new();
        let exit = run_command(
            CommandSpec {
                program_and_args: words,
                cwd: self.folder,
                env: &environment,
                stdin: None,
                timeout: TIMEOUT,
                grace: Duration::from_secs(5),
                token: "scheduler",
                log: &mut printed,
                errors: Some(&writer),
                log_cap: MOST,
                live: &|_| (),
            },
            &NeverStops,
            &mut |_| (),
        );
        drop(writer);
        let text = String::from_utf8_lossy(&printed).into_owned();
        let warnings = warnings.join().unwrap_or_default();
        let failed = |printed: String| ExecutorError::Failed {
            command: command.clone(),
            printed,
        };
        let unanswered = |why: String| ExecutorError::Unanswered {
            command: command.clone(),
            why,
        };
        match exit {
            Ok(Exit::Code(0)) => Ok(text),
            Ok(Exit::Code(code)) => {
                let printed = one_line(&format!("{text}\n{warnings}"));
                Err(failed(if printed.is_empty() {
                    format!("exit code {code}")
                } else {
                    printed
                }))
            }
            Ok(Exit::Signal(signal)) => Err(unanswered(format!("signal {signal}"))),
            Ok(Exit::TimedOut) => Err(unanswered("it took more than 2 minutes".to_owned())),
            Ok(Exit::Cancelled) => Err(ExecutorError::Stopped),
            Err(error) => Err(unstarted(&error)),
        }
    }
}

/// Returns the last lines of a text as one.
pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_get_the_keys_of_the_agents_that_they_ask() {
        let (environment, redactor) = (BTreeMap::new(), Redactor::default());
        let declared = BTreeMap::from([("DATABASE_TOKEN".to_owned(), String::new())]);
        let commands = SchedulerCommands {
            environment: &environment,
            declared: &declared,
            keys: BTreeSet::from(["MODEL", "OTHER_API_KEY"]),
            redactor: &redactor,
            folder: Path::new("/"),
        };
        let names = [
            "DATABASE_TOKEN",
            "GITHUB_TOKEN",
            "MODEL",
            "OTHER_API_KEY",
            "PATH",
        ];
        let passed = |keys: &[String]| {
            let names = names.iter().copied();
            let names = names.filter(|name| commands.is_for_jobs(keys, name, "value"));
            names.collect::<Vec<_>>()
        };
        assert_eq!(passed(&[]), ["DATABASE_TOKEN", "PATH"]);
        let keys = ["MODEL".to_owned()];
        assert_eq!(passed(&keys), ["DATABASE_TOKEN", "MODEL", "PATH"]);
        // A command of the project may need keys of its own.
        assert!(commands.is_for_command(&[], "GITHUB_TOKEN"));
        assert!(!commands.is_for_command(&[], "MODEL"));
        assert!(commands.is_for_command(&keys, "MODEL"));
    }
}
