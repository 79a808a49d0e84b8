//! Runs a command of a scheduler, and returns what it printed.

use crate::run::remote::ExecutorError;
use crate::steps::command::{CommandSpec, Exit, StopSignal, run_command};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long a command of a scheduler may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The most output of such a command, in bytes: a line for each of a million jobs.
const MOST: u64 = 256 << 20;

/// Runs the commands of a scheduler.
pub(crate) struct SchedulerCommands<'a> {
    /// The environment of the runner, which configures the scheduler's commands.
    pub(crate) environment: &'a BTreeMap<String, String>,
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
    /// Runs a program with arguments, and returns what it printed.
    ///
    /// # Errors
    /// When it cannot be started, fails, or does not end.
    pub(crate) fn run(&self, words: &[String]) -> Result<String, ExecutorError> {
        let command = words.first().cloned().unwrap_or_default();
        let environment: Vec<(String, String)> = self
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
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
                log_cap: MOST,
                live: &|_| (),
            },
            &NeverStops,
            &mut |_| (),
        );
        let text = String::from_utf8_lossy(&printed).into_owned();
        let failed = |printed: String| ExecutorError::Failed {
            command: command.clone(),
            printed,
        };
        match exit {
            Ok(Exit::Code(0)) => Ok(text),
            Ok(Exit::Code(code)) => {
                let printed = one_line(&text);
                Err(failed(if printed.is_empty() {
                    format!("exit code {code}")
                } else {
                    printed
                }))
            }
            Ok(Exit::Signal(signal)) => Err(failed(format!("signal {signal}"))),
            Ok(Exit::TimedOut) => Err(failed("no answer within 2 minutes".to_owned())),
            Ok(Exit::Cancelled) => Err(ExecutorError::Stopped),
            Err(error) => Err(ExecutorError::Command {
                command: command.clone(),
                why: error.to_string(),
            }),
        }
    }
}

/// Returns the last lines of a text as one.
pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}
