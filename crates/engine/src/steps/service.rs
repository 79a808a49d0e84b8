//! A service: a process that runs beside the batches, and what it printed last.

use super::command::{CommandSpec, Exit, Started, Stop, run_command};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of its output that are kept: the last.
const KEPT: usize = 16 << 10;

/// Lines of it that are shown.
const SHOWN: usize = 20;

/// What a service is started with.
pub(crate) struct ServiceSpec {
    /// Program and arguments.
    pub(crate) program: Vec<String>,
    /// Its working folder.
    pub(crate) folder: PathBuf,
    /// Its environment.
    pub(crate) environment: Vec<(String, String)>,
    /// What names it in its environment, so that a later run finds it.
    pub(crate) token: String,
    /// How long it gets to end after SIGTERM.
    pub(crate) grace: Duration,
}

/// A service that was started. Dropped, it is ended with all that came of it.
pub(crate) struct Service {
    started: Started,
    wish: Arc<Wish>,
    printed: Arc<Mutex<VecDeque<u8>>>,
    end: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts it, and returns as soon as the process is there.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(spec: ServiceSpec) -> Result<Self, String> {
        let wish = Arc::new(Wish::default());
        let printed = Arc::new(Mutex::new(VecDeque::new()));
        let end = Arc::new(Mutex::new(None));
        let (sender, receiver) = channel();
        let thread = {
            let (wish, end) = (Arc::clone(&wish), Arc::clone(&end));
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
                        log: &mut log,
                        // It may run for days, and only its last words are kept.
                        log_cap: u64::MAX,
                    },
                    &*wish,
                    // Whoever started it waits for this.
                    &mut |started: &Started| drop(sender.send(started.clone())),
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
                wish,
                printed,
                end,
                thread: Some(thread),
            }),
            Err(_) => {
                // It says why as the last thing that it does.
                let _ = thread.join();
                let why = end.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(why.unwrap_or_else(|| "it could not be started".to_owned()))
            }
        }
    }

    /// Its process.
    pub(crate) fn started(&self) -> &Started {
        &self.started
    }

    /// How it ended by itself; none: it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.clone()
    }

    /// The last lines that it printed.
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

    /// Asks it to end, and does not wait for that.
    pub(crate) fn ask_to_end(&self) {
        self.wish.set();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.wish.set();
        if let Some(thread) = self.thread.take() {
            // One that panicked has dropped its process, which ends it.
            let _ = thread.join();
        }
    }
}

/// The wish to end a service.
#[derive(Default)]
struct Wish {
    wished: Mutex<bool>,
    changed: Condvar,
}

impl Wish {
    fn set(&self) {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Stop for Wish {
    fn stopping(&self) -> bool {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, time: Duration) {
        let wished = self.wished.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(wished, time, |wished| !*wished);
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
