//! The run that was started on a page: one at a time, stopped with the server.

use crate::view::run::summary::{overall, summary};
use crate::view::text::invocation::Invocation;
use crate::view::text::style::Style;
use milepost_engine::ops;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{RunOptions, Silent, StopFlag};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The last run that was started on a page.
#[derive(Default)]
pub(super) struct Runs(Mutex<Option<Started>>);

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
    /// Starts a run; the request has the command for the journal. Returns false if one is running.
    pub(super) fn start(
        &self,
        request: &Request,
        options: RunOptions,
        invocation: &Invocation,
    ) -> bool {
        let mut current = lock(&self.0);
        if current.as_ref().is_some_and(Started::is_running) {
            return false;
        }
        let stop = Arc::new(StopFlag::new());
        let ended = Arc::default();
        let (request, invocation) = (request.clone(), invocation.clone());
        let command = request.command.clone();
        let (of_run, result) = (Arc::clone(&stop), Arc::clone(&ended));
        let run = move || {
            let report = ops::run::run(&request, &options, &mut Silent, &of_run);
            let end = match &report {
                Ok(report) => Ended {
                    status: overall(report).to_owned(),
                    text: summary(Style::PLAIN, report, &invocation, false),
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
            .spawn(run);
        let is_started = thread.is_ok();
        *current = thread.ok().map(|thread| Started {
            command,
            stop,
            thread: Some(thread),
            ended,
        });
        is_started
    }

    /// Stops the run as Ctrl-C does. Returns false if none is running.
    pub(super) fn stop(&self) -> bool {
        let current = lock(&self.0);
        let running = current.as_ref().filter(|started| started.is_running());
        running.inspect(|started| started.stop.set()).is_some()
    }

    /// Stops the run, and waits for its end.
    pub(super) fn end(&self) {
        self.stop();
        let thread = lock(&self.0)
            .as_mut()
            .and_then(|started| started.thread.take());
        if let Some(thread) = thread {
            // A panic was printed, and the workspace recovers at the next run.
            let _ = thread.join();
        }
    }

    /// Returns the last run; `None` if no page started one.
    pub(super) fn state(&self) -> Option<RunState> {
        let current = lock(&self.0);
        current.as_ref().map(|started| RunState {
            command: started.command.clone(),
            is_running: started.is_running(),
            is_stopping: started.is_running() && started.stop.is_set(),
            ended: lock(&started.ended).clone(),
        })
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
