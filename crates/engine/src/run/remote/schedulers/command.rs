//! A scheduler that `[executor.command]` describes by three commands.

use super::program::{SchedulerCommands, one_line};
use crate::run::remote::{
    CancelledJobs, Executor, ExecutorError, JobArray, JobEnd, JobState, JobStates, PolledArray,
};
use milepost_core::expr::shell::{self, Misplaced};
use milepost_core::expr::template::Template;
use milepost_core::model::executor::{CommandExecutor, Executors, JobSettings};
use serde_json::{Value, json};

struct CommandScheduler<'a> {
    commands: SchedulerCommands<'a>,
    declared: &'a CommandExecutor,
}

/// Creates the scheduler that `[executor.command]` describes.
pub(super) fn create<'a>(
    commands: SchedulerCommands<'a>,
    executors: &'a Executors,
    _: &'a JobSettings,
) -> Option<Box<dyn Executor + 'a>> {
    let declared = executors.command.as_ref()?;
    Some(Box::new(CommandScheduler { commands, declared }))
}

impl CommandScheduler<'_> {
    /// Runs a command of the declaration.
    fn run(&self, template: &Template, key: &str, scope: &Value) -> Result<String, ExecutorError> {
        let failed = |why| ExecutorError::Command {
            command: key.to_owned(),
            why,
        };
        let parts = template.render_parts(scope);
        let parts = parts.map_err(|error| failed(error.to_string()))?;
        let script = shell::script(&parts, &mut |_| {
            Err(Misplaced {
                range: 0..0,
                message: "`as_file` is for commands of steps".to_owned(),
            })
        });
        let script = script.map_err(|misplaced| failed(misplaced.message))?;
        let words = shell::invocation(template.source(), script);
        self.commands.run(&words).map_err(|error| match error {
            ExecutorError::Failed { printed, .. } => ExecutorError::Failed {
                command: key.to_owned(),
                printed,
            },
            ExecutorError::Unanswered { why, .. } => ExecutorError::Unanswered {
                command: key.to_owned(),
                why,
            },
            other => other,
        })
    }
}

impl Executor for CommandScheduler<'_> {
    fn submit(&self, array: &JobArray) -> Result<String, ExecutorError> {
        let needs = &array.resources;
        let scope = json!({
            "script": array.script.display().to_string(),
            "output": array.output.display().to_string(),
            "name": array.name,
            "jobs": array.jobs,
            "last": array.jobs - 1,
            "at_once": array.at_once,
            "cpus": needs.cpus.unwrap_or(1),
            "memory_mb": needs.memory.map_or(0, |bytes| bytes.div_ceil(1_000_000)),
            "seconds": needs.time.map_or(0, |time| time.as_secs().max(1)),
        });
        let printed = self.run(&self.declared.submit, "submit", &scope)?;
        // With `find`, a remark in the last line is not taken for an id.
        let words = last_words(&printed);
        match words
            .last()
            .filter(|_| words.len() == 1 || !self.can_find())
        {
            Some(id) => Ok((*id).to_owned()),
            None => Err(ExecutorError::Printed {
                command: "submit".to_owned(),
                printed: one_line(&printed),
                expected: "the id of the jobs as its last word",
            }),
        }
    }

    fn poll(&self, arrays: &[PolledArray]) -> Result<JobStates, ExecutorError> {
        if arrays.is_empty() {
            return Ok(JobStates::new());
        }
        let ids: Vec<&str> = arrays.iter().map(|array| array.id.as_str()).collect();
        let scope = json!({ "ids": ids });
        let printed = self.run(&self.declared.poll, "poll", &scope)?;
        let mut states = JobStates::new();
        for line in printed.lines().filter(|line| !line.trim().is_empty()) {
            let (job, state) = read(line).ok_or_else(|| ExecutorError::Printed {
                command: "poll".to_owned(),
                printed: line.to_owned(),
                expected: "an id, an index and a state such as `running`",
            })?;
            states.insert(job, state);
        }
        Ok(states)
    }

    fn cancel(&self, array: &str, which: CancelledJobs) -> Result<(), ExecutorError> {
        // Jobs that start after all find the file that tells them to end.
        if which == CancelledJobs::Queued {
            return Ok(());
        }
        let scope = json!({ "id": array });
        self.run(&self.declared.cancel, "cancel", &scope)?;
        Ok(())
    }

    fn find(&self, name: &str) -> Result<Option<String>, ExecutorError> {
        let Some(find) = &self.declared.find else {
            return Ok(None);
        };
        let printed = self.run(find, "find", &json!({ "name": name }))?;
        match last_words(&printed).as_slice() {
            [] => Ok(None),
            [id] => Ok(Some((*id).to_owned())),
            _ => Err(ExecutorError::Printed {
                command: "find".to_owned(),
                printed: one_line(&printed),
                expected: "an id, or nothing",
            }),
        }
    }

    fn can_find(&self) -> bool {
        self.declared.find.is_some()
    }

    fn index_variable(&self) -> &str {
        &self.declared.index
    }

    fn describe(&self, array: &str, index: u64) -> String {
        format!("{array}[{index}]")
    }
}

/// Returns the words of the last line that has any.
fn last_words(printed: &str) -> Vec<&str> {
    let mut lines = printed.lines().map(str::split_whitespace);
    let last = lines.rfind(|words| words.clone().next().is_some());
    last.into_iter().flatten().collect()
}

/// Reads a line of `poll`: id, index, state, and the node or the reason.
fn read(line: &str) -> Option<((String, u64), JobState)> {
    let mut words = line.split_whitespace();
    let (id, index, state) = (words.next()?, words.next()?, words.next()?);
    let rest = words.collect::<Vec<_>>().join(" ");
    let end = match state {
        "queued" => return Some(((id.to_owned(), index.parse().ok()?), JobState::Queued(rest))),
        "running" => {
            return Some((
                (id.to_owned(), index.parse().ok()?),
                JobState::Running(rest),
            ));
        }
        "done" => JobEnd::Done,
        "failed" => JobEnd::Failed,
        "timeout" => JobEnd::TimedOut,
        "memory" => JobEnd::OutOfMemory,
        "node" => JobEnd::NodeFailed,
        "cancelled" => JobEnd::Cancelled,
        "preempted" => JobEnd::Preempted,
        _ => return None,
    };
    Some(((id.to_owned(), index.parse().ok()?), JobState::Ended(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_poll_is_an_id_an_index_and_a_state() {
        let job = |index| ("7.pbs".to_owned(), index);
        let running = JobState::Running("node 3".to_owned());
        assert_eq!(read("7.pbs 2 running node 3"), Some((job(2), running)));
        let end = JobState::Ended(JobEnd::OutOfMemory);
        assert_eq!(read("7.pbs 0 memory"), Some((job(0), end)));
        assert_eq!(read("7.pbs x running"), None);
        assert_eq!(read("7.pbs 1 sleeping"), None);
    }
}
