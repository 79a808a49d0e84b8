//! Runs a command of a scheduler, and returns what it printed.

use crate::run::remote::ExecutorError;
use crate::steps::command::{CommandSpec, Exit, StopSignal, run_command};
use milepost_core::base::redact::{Redactor, names_key};
use milepost_store::store::read::uninterrupted;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, PipeReader, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a command of a scheduler may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The most output of such a command, in bytes: a line for each of a million jobs.
const MOST: u64 = 256 << 20;

/// The most bytes of its standard error that are kept.
const MOST_WARNINGS: usize = 1 << 20;

/// How long its standard error may stay open after its end.
const LINGERS: Duration = Duration::from_millis(200);

/// Numbers the commands, so that the processes of one are not taken for those of another.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Runs the commands of a scheduler.
pub(crate) struct SchedulerCommands<'a> {
    /// The environment of the runner, which configures the scheduler's commands.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The declared variables, which jobs need.
    pub(crate) declared: &'a BTreeMap<String, String>,
    /// The variables with keys of agents, which no job asks.
    pub(crate) keys: Vec<&'a str>,
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

/// The standard error of a command.
struct Warnings {
    text: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl Warnings {
    /// Reads a pipe on another thread: the command must not wait for a full one, and a job that it leaves may keep it open.
    fn read(mut pipe: PipeReader) -> io::Result<Self> {
        let (text, (sender, closed)) = (Arc::<Mutex<Vec<u8>>>::default(), channel());
        let read = Arc::clone(&text);
        std::thread::Builder::new().spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = uninterrupted(|| pipe.read(&mut buffer)) {
                let mut text = read.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_WARNINGS.saturating_sub(text.len()).min(length);
                text.extend_from_slice(&buffer[..room]);
            }
            // The receiver may be gone.
            let _ = sender.send(());
        })?;
        Ok(Self { text, closed })
    }

    /// Returns what was printed, when the pipe is closed or shortly afterwards.
    fn text(&self) -> String {
        let _ = self.closed.recv_timeout(LINGERS);
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl SchedulerCommands<'_> {
    /// Returns false for a variable that holds a key, unless it is declared.
    pub(crate) fn is_for_jobs(&self, name: &str, value: &str) -> bool {
        let is_key = names_key(name) || matches!(self.redactor.text(value), Cow::Owned(_));
        self.declared.contains_key(name) || !is_key && self.is_for_commands(name)
    }

    /// Returns false for a variable with the key of an agent, unless it is declared.
    fn is_for_commands(&self, name: &str) -> bool {
        self.declared.contains_key(name) || !self.keys.contains(&name)
    }

    /// Runs a program with arguments, and returns its standard output, without the warnings in its standard error. A scheduler may
    /// pass its environment on to the jobs.
    ///
    /// # Errors
    /// When it cannot be started, fails, or does not end.
    pub(crate) fn run(&self, words: &[String]) -> Result<String, ExecutorError> {
        self.run_with(words, &|name, _| self.is_for_commands(name))
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
        let (errors, writer) = std::io::pipe().map_err(|error| unstarted(&error))?;
        let warnings = Warnings::read(errors).map_err(|error| unstarted(&error))?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut printed = Vec::new();
        let exit = run_command(
            CommandSpec {
                program_and_args: words,
                cwd: self.folder,
                env: &environment,
                stdin: None,
                timeout: TIMEOUT,
                grace: Duration::from_secs(5),
                token: &format!("scheduler-{serial}"),
                may_leave: true,
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
        let warnings = warnings.text();
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
    fn no_command_gets_the_key_of_an_agent() {
        let (environment, redactor) = (BTreeMap::new(), Redactor::default());
        let declared = BTreeMap::from([("DATABASE_TOKEN".to_owned(), String::new())]);
        let commands = SchedulerCommands {
            environment: &environment,
            declared: &declared,
            keys: vec!["MODEL", "DATABASE_TOKEN"],
            redactor: &redactor,
            folder: Path::new("/"),
        };
        let names = ["DATABASE_TOKEN", "GITHUB_TOKEN", "MODEL", "PATH"];
        let passed = |is_passed: &dyn Fn(&str) -> bool| names.map(is_passed);
        // A command of the project may need keys of its own.
        let for_commands = passed(&|name| commands.is_for_commands(name));
        assert_eq!(for_commands, [true, true, false, true]);
        let for_jobs = passed(&|name| commands.is_for_jobs(name, "value"));
        assert_eq!(for_jobs, [true, false, false, true]);
    }
}
