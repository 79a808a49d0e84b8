//! A service: a process that runs while batches run, and its last output.

use super::command::{CommandSpec, Exit, StartedProcess, StopSignal, run_command};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many of its last bytes of output are kept.
const KEPT: usize = 16 << 10;

/// How many lines of its output are shown.
const SHOWN: usize = 20;

/// The program of a service and its environment.
pub(crate) struct ServiceSpec {
    pub(crate) program: Vec<String>,
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(String, String)>,
    /// The id in its environment, by which a later run finds it.
    pub(crate) token: String,
    /// The time between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
}

/// A running service. Dropping it ends the process and its descendants.
pub(crate) struct Service {
    started: StartedProcess,
    stop_request: Arc<StopRequest>,
    printed: Arc<Mutex<VecDeque<u8>>>,
    end: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts a service, and returns as soon as the process exists.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(spec: ServiceSpec) -> Result<Self, String> {
        let stop_request = Arc::new(StopRequest::default());
        let printed = Arc::new(Mutex::new(VecDeque::new()));
        let end = Arc::new(Mutex::new(None));
        let (sender, receiver) = channel();
        let thread = {
            let (stop_request, end) = (Arc::clone(&stop_request), Arc::clone(&end));
            let mut log = Tail(Arc::clone(&printed));
            let run = move || {
                let exit = run_command(
                    CommandSpec {
                        program_and_args: &spec.program,
                        cwd: &spec.folder,
                        env: &spec.environment,
                        stdin: None,
                        timeout: Duration::MAX,
                        grace: spec.grace,
                        token: &spec.token,
                        may_leave: false,
                        log: &mut log,
                        // It may run for days, and only the end of its output is kept.
                        errors: None,
                        log_cap: u64::MAX,
                        live: &|_| (),
                    },
                    &*stop_request,
                    // The starting thread waits for this.
                    &mut |started: &StartedProcess| drop(sender.send(started.clone())),
                );
                let how = match exit {
                    Ok(Exit::Code(code)) => format!("it ended with exit code {code}"),
                    Ok(Exit::Signal(signal)) => format!("signal {signal} ended it"),
                    Ok(Exit::TimedOut | Exit::Cancelled) => "it was ended".to_owned(),
                    Err(error) => error.to_string(),
                };
                *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
            };
            let thread = std::thread::Builder::new().name("milepost-service".to_owned());
            thread.spawn(run).map_err(|error| error.to_string())?
        };
        match receiver.recv() {
            Ok(started) => Ok(Self {
                started,
                stop_request,
                printed,
                end,
                thread: Some(thread),
            }),
            Err(_) => {
                // The thread stores the reason before it ends.
                let _ = thread.join();
                let why = end.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(why.unwrap_or_else(|| "it could not be started".to_owned()))
            }
        }
    }

    pub(crate) fn started(&self) -> &StartedProcess {
        &self.started
    }

    /// Returns how it ended by itself; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.clone()
    }

    /// Returns the last lines that it printed.
    pub(crate) fn printed(&self) -> Vec<String> {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = printed.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let shown = |line: &str| -> String {
            let is_shown = |c: &char| !c.is_control() || *c == '\t';
            line.chars().filter(is_shown).collect()
        };
        let lines: Vec<String> = text.lines().map(shown).collect();
        lines[lines.len().saturating_sub(SHOWN)..].to_vec()
    }

    /// Asks it to end without waiting.
    pub(crate) fn ask_to_end(&self) {
        self.stop_request.set();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop_request.set();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped its process, which ends it.
            let _ = thread.join();
        }
    }
}

/// The request to end a service.
#[derive(Default)]
struct StopRequest {
    requested: Mutex<bool>,
    changed: Condvar,
}

impl StopRequest {
    fn set(&self) {
        *self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl StopSignal for StopRequest {
    fn stopping(&self) -> bool {
        *self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, time: Duration) {
        let requested = self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(requested, time, |requested| !*requested);
        drop(waited);
    }
}

/// Keeps the last bytes that are written.
struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl io::Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
