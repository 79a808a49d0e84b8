//! Ends work inside Milepost midway: the wish to stop the run, and the end of a step's or a stage's time.

use super::command::Deadline;
use milepost_core::base::source::{Sink, Source};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What is read or written between two looks at the alarm, in bytes and in calls.
const BYTES: usize = 1 << 14;
const CALLS: u32 = 128;

/// How often the alarm is looked at while work goes on apart.
const TICK: Duration = Duration::from_millis(50);

/// Stack of a thread that works apart: programs may recurse.
const STACK: usize = 16 << 20;

/// Why work must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rang {
    /// The run is being stopped.
    Stop,
    /// The time is over.
    Time,
}

/// Rings when the run is being stopped or the time is over. What an attempt reads and writes looks at it.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    wished: Arc<AtomicBool>,
    end: Mutex<Option<Deadline>>,
}

impl Alarm {
    /// Rings when `wished` is set.
    pub(crate) fn new(wished: Arc<AtomicBool>) -> Arc<Self> {
        let end = Mutex::default();
        Arc::new(Self { wished, end })
    }

    /// Gives what follows so much time; none: no limit.
    pub(crate) fn set(&self, left: Option<Duration>) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = left.map(Deadline::after);
    }

    /// Why work must end; none: it may go on.
    pub(crate) fn rang(&self) -> Option<Rang> {
        if self.wished.load(Ordering::Relaxed) {
            return Some(Rang::Stop);
        }
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.is_some_and(|end| end.is_over()).then_some(Rang::Time)
    }

    /// An error once work must end.
    ///
    /// # Errors
    /// When the alarm rang.
    pub(crate) fn look(&self) -> io::Result<()> {
        match self.rang() {
            None => Ok(()),
            Some(Rang::Stop) => Err(io::Error::other("the run was stopped")),
            Some(Rang::Time) => Err(io::Error::other("the time is over")),
        }
    }

    /// A source whose reading ends when the alarm rings.
    pub(crate) fn source(self: &Arc<Self>, inner: Arc<dyn Source>) -> Arc<dyn Source> {
        let alarm = Arc::clone(self);
        Arc::new(Watched { inner, alarm })
    }

    /// A sink whose writing ends when the alarm rings.
    pub(crate) fn sink(self: &Arc<Self>, inner: Box<dyn Sink>) -> Box<dyn Sink> {
        Box::new(Guarded::new(self, inner))
    }

    /// Does work on another thread and waits for it, or until the alarm rings: then the thread is left alone, and what
    /// it gives is dropped. So it may own memory only: no file, no lock.
    ///
    /// # Errors
    /// When the alarm rings first.
    pub(crate) fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Outcome> {
        let (sender, receiver) = channel();
        let job = Box::new(move |free: &dyn Fn()| {
            let done = catch_unwind(AssertUnwindSafe(work));
            // Whoever hears of the end may have more work at once.
            free();
            // Nobody listens any more when the alarm rang.
            let _ = sender.send(done);
        });
        helpers::give(job).map_err(|error| {
            Outcome::new(OutcomeKind::Parse, format!("no thread for it: {error}"))
        })?;
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(RecvTimeoutError::Timeout) => self
                    .look()
                    .map_err(|error| Outcome::new(OutcomeKind::Timeout, error.to_string()))?,
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "a step broke down: this is a defect of Milepost";
                    return Err(Outcome::new(OutcomeKind::Parse, message));
                }
            }
        }
    }
}

/// Threads that work apart. One that is done waits for the next job: starting one for each batch would cost more than most jobs.
mod helpers {
    use super::{Mutex, PoisonError, STACK, thread};
    use std::cell::Cell;
    use std::io;
    use std::sync::mpsc::{Sender, channel};

    /// Work; it calls what it is given once the thread may get more.
    pub(super) type Job = Box<dyn FnOnce(&dyn Fn()) + Send>;

    /// Those that wait.
    static FREE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

    /// At most so many wait; further ones end.
    const KEPT: usize = 16;

    /// Hands a job to a thread that waits, or to a new one.
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

/// Looks at the alarm now and then.
struct Look {
    alarm: Arc<Alarm>,
    bytes: usize,
    calls: u32,
}

impl Look {
    fn new(alarm: &Arc<Alarm>) -> Self {
        let alarm = Arc::clone(alarm);
        // The first call looks.
        Self {
            alarm,
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
        self.alarm.look()
    }
}

/// A writer that ends when the alarm rings.
pub(crate) struct Guarded<W> {
    inner: W,
    look: Look,
}

impl<W> Guarded<W> {
    /// Around a writer.
    pub(crate) fn new(alarm: &Arc<Alarm>, inner: W) -> Self {
        let look = Look::new(alarm);
        Self { inner, look }
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.look.after(bytes.len())?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Seek> Seek for Guarded<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

struct Watched {
    inner: Arc<dyn Source>,
    alarm: Arc<Alarm>,
}

impl Source for Watched {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let inner = self.inner.open()?;
        let look = Look::new(&self.alarm);
        Ok(Box::new(Reading { inner, look }))
    }
}

struct Reading {
    inner: Box<dyn Read + Send>,
    look: Look,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.look.after(n)?;
        Ok(n)
    }
}

impl Sink for Guarded<Box<dyn Sink>> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.look.alarm.look()?;
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Alarm, Rang};
    use milepost_core::base::source::Source;
    use std::io::{self, Read};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
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
        let wished = Arc::new(AtomicBool::new(false));
        let alarm = Alarm::new(Arc::clone(&wished));
        assert_eq!(alarm.rang(), None);
        alarm.set(Some(Duration::from_millis(1)));
        let endless = || {
            let mut reader = alarm.source(Arc::new(Endless)).open().unwrap();
            io::copy(&mut reader, &mut io::sink())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(endless(), "the time is over");
        assert_eq!(alarm.rang(), Some(Rang::Time));
        // It waits for a word that never comes, until the test drops its end.
        let (word, never) = std::sync::mpsc::channel::<()>();
        let apart = alarm.apart(move || never.recv().is_ok());
        assert!(apart.is_err());
        drop(word);
        alarm.set(None);
        // One thread after the other, and one beside the other.
        for n in 0..3 {
            let inner = Arc::clone(&alarm);
            let both = alarm.apart(move || (n, inner.apart(move || n + 1)));
            let (first, second) = both.unwrap();
            assert_eq!((first, second.unwrap()), (n, n + 1));
        }
        let panics = || alarm.apart(|| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        wished.store(true, Ordering::Relaxed);
        assert_eq!(endless(), "the run was stopped");
    }
}
