//! Cancels work inside Milepost: when the run is stopped, or the time of a step or stage is over.

use super::command::{Deadline, StopSignal, StopTime};
use milepost_core::base::in_order::no_thread::no_thread;
use milepost_core::base::source::{Sink, Source};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How much is read or written between two checks of the token, in bytes and in calls.
const BYTES: usize = 1 << 14;
const CALLS: u32 = 128;

/// How often the token is checked while a thread works.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// The stack of such a thread: programs can recurse.
const STACK: usize = 16 << 20;

/// Why work is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// The run is stopped.
    Stopped,
    /// The time is over.
    TimedOut,
}

/// A token that is cancelled when the run is stopped or the time is over. Files of an attempt check it while they are read and
/// written.
#[derive(Debug, Default)]
pub(crate) struct CancelToken {
    stopped: Arc<StopTime>,
    end: Mutex<Option<Deadline>>,
}

impl CancelToken {
    /// Returns a token that is cancelled when the run is stopped.
    pub(crate) fn new(stopped: Arc<StopTime>) -> Arc<Self> {
        let end = Mutex::default();
        Arc::new(Self { stopped, end })
    }

    /// Limits the time of the work that follows; `None` removes the limit.
    pub(crate) fn set_time(&self, left: Option<Duration>) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = left.map(Deadline::after);
    }

    /// Returns the time that is left; `None` if it is not limited.
    pub(crate) fn left(&self) -> Option<Duration> {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.map(|end| end.left())
    }

    /// Returns this token if its time is limited, and otherwise one for a piece of work with this limit. Both are cancelled when
    /// the run is stopped.
    pub(crate) fn or_within(self: &Arc<Self>, time: Duration) -> Arc<Self> {
        if self.left().is_some() {
            return Arc::clone(self);
        }
        let token = Self::new(Arc::clone(&self.stopped));
        token.set_time(Some(time));
        token
    }

    /// Returns why work is cancelled; `None` if it may continue.
    pub(crate) fn reason(&self) -> Option<CancelReason> {
        if self.stopped.is_set() {
            return Some(CancelReason::Stopped);
        }
        let is_over = self.left().is_some_and(|left| left.is_zero());
        is_over.then_some(CancelReason::TimedOut)
    }

    /// Returns true if the run was stopped less than `grace` ago: what was paid for may finish.
    pub(crate) fn is_in_grace(&self, grace: Duration) -> bool {
        self.stopped.elapsed().is_some_and(|since| since < grace)
    }

    /// Returns an error if work is cancelled.
    ///
    /// # Errors
    /// When the token is cancelled.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.reason() {
            None => Ok(()),
            Some(CancelReason::Stopped) => Err(io::Error::other("the run was stopped")),
            Some(CancelReason::TimedOut) => Err(io::Error::other("timed out")),
        }
    }

    /// Returns a source that fails to read once the token is cancelled.
    pub(crate) fn source(self: &Arc<Self>, inner: Arc<dyn Source>) -> Arc<dyn Source> {
        let cancel = Arc::clone(self);
        Arc::new(CancellableSource { inner, cancel })
    }

    /// Returns a sink that fails to write once the token is cancelled.
    pub(crate) fn sink(self: &Arc<Self>, inner: Box<dyn Sink>) -> Box<dyn Sink> {
        Box::new(CancellableSink::new(self, inner))
    }

    /// Runs work on another thread and waits for its result. If the token is cancelled first, the thread continues and its
    /// result is dropped. So the work may own memory only: no file, no lock.
    ///
    /// # Errors
    /// When the token is cancelled first.
    pub(crate) fn run_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Outcome> {
        let (sender, receiver) = channel();
        let job = Box::new(move |free: &dyn Fn()| {
            let done = catch_unwind(AssertUnwindSafe(work));
            // The caller may have more work at once.
            free();
            // The receiver is gone if the token was cancelled.
            let _ = sender.send(done);
        });
        helpers::give(job).map_err(|error| Outcome::new(OutcomeKind::Memory, no_thread(&error)))?;
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(RecvTimeoutError::Timeout) => self
                    .check()
                    .map_err(|error| Outcome::new(OutcomeKind::Timeout, error.to_string()))?,
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "a step panicked: this is a defect of Milepost, please report it";
                    return Err(Outcome::new(OutcomeKind::Parse, message));
                }
            }
        }
    }
}

/// A pool of threads. Starting a thread for each batch would cost more than most jobs.
mod helpers {
    use super::{Mutex, PoisonError, STACK, thread};
    use std::cell::Cell;
    use std::io;
    use std::sync::mpsc::{Sender, channel};

    /// A job; it calls its argument when the thread is free for the next one.
    pub(super) type Job = Box<dyn FnOnce(&dyn Fn()) + Send>;

    static FREE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

    /// The most idle threads.
    const KEPT: usize = 16;

    /// Hands a job to an idle thread or a new one.
    pub(super) fn give(mut job: Job) -> io::Result<()> {
        loop {
            let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(free) = free else { break };
            match free.send(job) {
                Ok(()) => return Ok(()),
                Err(back) => job = back.0,
            }
        }
        let (sender, jobs) = channel::<Job>();
        let own = sender.clone();
        thread::Builder::new().stack_size(STACK).spawn(move || {
            for job in jobs {
                let stays = Cell::new(false);
                job(&|| {
                    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
                    if free.len() < KEPT {
                        free.push(own.clone());
                        stays.set(true);
                    }
                });
                if !stays.get() {
                    return;
                }
            }
        })?;
        sender
            .send(job)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// The signal that stops a call in flight: later than `stop`, as long as the run was stopped less than `grace` ago.
pub(crate) struct StopAfterGrace<'a> {
    pub(crate) stop: &'a dyn StopSignal,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) grace: Duration,
}

impl StopSignal for StopAfterGrace<'_> {
    fn stopping(&self) -> bool {
        self.stop.stopping() && !self.cancel.is_in_grace(self.grace)
    }

    fn wait(&self, time: Duration) {
        self.stop.wait(time);
    }
}

/// Checks the token after a number of bytes or calls.
struct PeriodicCheck {
    cancel: Arc<CancelToken>,
    bytes: usize,
    calls: u32,
}

impl PeriodicCheck {
    fn new(cancel: &Arc<CancelToken>) -> Self {
        let cancel = Arc::clone(cancel);
        // The first call checks.
        Self {
            cancel,
            bytes: BYTES,
            calls: 0,
        }
    }

    fn after(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes += bytes;
        self.calls += 1;
        if self.bytes < BYTES && self.calls < CALLS {
            return Ok(());
        }
        (self.bytes, self.calls) = (0, 0);
        self.cancel.check()
    }
}

/// A writer that fails once the token is cancelled.
pub(crate) struct CancellableSink<W> {
    inner: W,
    check: PeriodicCheck,
}

impl<W> CancellableSink<W> {
    pub(crate) fn new(cancel: &Arc<CancelToken>, inner: W) -> Self {
        let check = PeriodicCheck::new(cancel);
        Self { inner, check }
    }
}

impl<W: Write> Write for CancellableSink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check.after(bytes.len())?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Seek> Seek for CancellableSink<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

struct CancellableSource {
    inner: Arc<dyn Source>,
    cancel: Arc<CancelToken>,
}

impl Source for CancellableSource {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let inner = self.inner.open()?;
        let check = PeriodicCheck::new(&self.cancel);
        Ok(Box::new(CancellableReader { inner, check }))
    }
}

struct CancellableReader {
    inner: Box<dyn Read + Send>,
    check: PeriodicCheck,
}

impl Read for CancellableReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.check.after(n)?;
        Ok(n)
    }
}

impl Sink for CancellableSink<Box<dyn Sink>> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.check.cancel.check()?;
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{CancelReason, CancelToken, StopTime};
    use milepost_core::base::source::Source;
    use std::io::{self, Read};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    struct Endless;

    impl Source for Endless {
        fn name(&self) -> String {
            "endless".to_owned()
        }

        fn path(&self) -> &Path {
            Path::new("endless")
        }

        fn open(&self) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(io::repeat(b'x')))
        }
    }

    #[test]
    fn what_never_ends_is_ended_by_the_time_and_by_the_wish() {
        let stopped = Arc::new(StopTime::default());
        let cancel = CancelToken::new(Arc::clone(&stopped));
        assert_eq!(cancel.reason(), None);
        cancel.set_time(Some(Duration::from_millis(1)));
        let endless = || {
            let mut reader = cancel.source(Arc::new(Endless)).open().unwrap();
            io::copy(&mut reader, &mut io::sink())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(endless(), "timed out");
        assert_eq!(cancel.reason(), Some(CancelReason::TimedOut));
        // It waits for a word that never comes, until the test drops its end.
        let (word, never) = std::sync::mpsc::channel::<()>();
        let unfinished = cancel.run_on_thread(move || never.recv().is_ok());
        assert!(unfinished.is_err());
        drop(word);
        cancel.set_time(None);
        // One thread after the other, and one beside the other.
        for n in 0..3 {
            let inner = Arc::clone(&cancel);
            let both = cancel.run_on_thread(move || (n, inner.run_on_thread(move || n + 1)));
            let (first, second) = both.unwrap();
            assert_eq!((first, second.unwrap()), (n, n + 1));
        }
        let panics = || cancel.run_on_thread(|| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert!(!cancel.is_in_grace(Duration::MAX));
        stopped.set();
        assert_eq!(endless(), "the run was stopped");
        assert!(cancel.is_in_grace(Duration::MAX) && !cancel.is_in_grace(Duration::ZERO));
    }
}
