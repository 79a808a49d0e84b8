//! The run that was started on a page, one at a time. It is stopped with the server.

use crate::view::run::notice;
use crate::view::run::summary::{overall, summary};
use crate::view::text::style::Style;
use milepost_engine::ops;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{RunOptions, Silent, StopFlag};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The last run that was started on a page.
#[derive(Default)]
pub(super) struct Runs {
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    last: Option<Started>,
    /// True when the server ends: no run starts any more.
    ending: bool,
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    #[error("a run started from these pages is still running: stop it, or wait until it ends")]
    Running,
    #[error("the server is ending: start it again with `milepost ui`")]
    Ending,
    #[error("the system cannot start a thread for the run: {0}")]
    Thread(#[from] std::io::Error),
}

struct Started {
    command: String,
    stop: Arc<StopFlag>,
    thread: Option<JoinHandle<()>>,
    ended: Arc<Mutex<Option<Ended>>>,
}

/// How a run ended.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ended {
    /// One word, as in `status`.
    status: String,
    /// The summary, or the error.
    text: String,
    /// The id of the run; `None` if it did not begin.
    run_id: Option<String>,
    failed: bool,
}

/// The last run that was started on a page, as pages show it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RunState {
    command: String,
    is_running: bool,
    is_stopping: bool,
    ended: Option<Ended>,
}

impl Runs {
    /// Starts a run; the request has the command for the journal.
    ///
    /// # Errors
    /// If one is running, the server is ending, or the system has no thread for it.
    pub(super) fn start(&self, request: &Request, options: RunOptions) -> Result<(), NotStarted> {
        let mut current = lock(&self.current);
        if current.ending {
            return Err(NotStarted::Ending);
        }
        if current.last.as_ref().is_some_and(Started::is_running) {
            return Err(NotStarted::Running);
        }
        let stop = Arc::new(StopFlag::new());
        let ended = Arc::default();
        let request = request.clone();
        let command = request.command.clone();
        let (of_run, result) = (Arc::clone(&stop), Arc::clone(&ended));
        let run = move || {
            let report = ops::run::run(&request, &options, &mut Silent, &of_run);
            let end = match &report {
                Ok(report) => Ended {
                    status: overall(report).to_owned(),
                    text: notice::kept(Style::PLAIN, &report.quarantined)
                        .into_iter()
                        .chain([summary(Style::PLAIN, report, &request.invocation, false)])
                        .collect::<Vec<_>>()
                        .join("\n"),
                    run_id: Some(report.run_id.clone()),
                    failed: ops::exit_code::exit_code(report) != 0,
                },
                Err(error) => Ended {
                    status: "not run".to_owned(),
                    text: error.to_string(),
                    run_id: None,
                    failed: true,
                },
            };
            *lock(&result) = Some(end);
        };
        let thread = std::thread::Builder::new()
            .name("run".to_owned())
            .spawn(run)?;
        current.last = Some(Started {
            command,
            stop,
            thread: Some(thread),
            ended,
        });
        Ok(())
    }

    /// Stops the run as Ctrl-C does. Returns false if none is running.
    pub(super) fn stop(&self) -> bool {
        lock(&self.current).stop()
    }

    /// Stops the run; no other starts any more.
    pub(super) fn begin_end(&self) {
        let mut current = lock(&self.current);
        current.ending = true;
        current.stop();
    }

    /// Stops the run, and waits for its end.
    pub(super) fn end(&self) {
        self.begin_end();
        let thread = lock(&self.current)
            .last
            .as_mut()
            .and_then(|started| started.thread.take());
        if let Some(thread) = thread {
            // A panic was printed, and the workspace recovers at the next run.
            let _ = thread.join();
        }
    }

    /// Returns the last run; `None` if no page started one.
    pub(super) fn state(&self) -> Option<RunState> {
        let current = lock(&self.current);
        current.last.as_ref().map(|started| RunState {
            command: started.command.clone(),
            is_running: started.is_running(),
            is_stopping: started.is_running() && started.stop.is_set(),
            ended: lock(&started.ended).clone(),
        })
    }
}

impl Current {
    fn stop(&self) -> bool {
        let running = self.last.as_ref().filter(|started| started.is_running());
        running.inspect(|started| started.stop.set()).is_some()
    }
}

impl Started {
    fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn nothing_starts_once_the_server_ends() {
        let runs = Runs::default();
        runs.end();
        let request = Request::new("nothing".into(), BTreeMap::new());
        let started = runs.start(&request, RunOptions::default());
        assert!(matches!(started, Err(NotStarted::Ending)), "{started:?}");
        assert!(runs.state().is_none());
    }
}
