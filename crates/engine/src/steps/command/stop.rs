//! Ends processes: asks them with `SIGTERM`, waits, and kills them.

#![allow(
    clippy::disallowed_methods,
    reason = "deadlines of programs are measured where they are kept"
)]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;

/// How long to wait for processes after `SIGKILL`. Only a process that hangs in the kernel takes longer.
const FORCE_TAKES: Duration = Duration::from_secs(5);

/// The signal that stops a run.
pub trait StopSignal: Sync {
    /// Returns true if the run is stopped.
    fn stopping(&self) -> bool;
    /// Waits for this time, or until the run is stopped.
    fn wait(&self, time: Duration);
}

/// Whether a run is stopped, and since when.
#[derive(Debug, Default)]
pub struct StopTime(OnceLock<Instant>);

impl StopTime {
    /// Stops the run now, unless it is stopped already.
    pub(crate) fn set(&self) {
        self.0.get_or_init(Instant::now);
    }

    /// Returns the time since the run was stopped; `None` if it is not.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        self.0.get().map(Instant::elapsed)
    }

    /// Returns true if the run is stopped.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}

/// A moment in the future by the monotonic clock, because setting the wall clock must not end a command.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the moment after this time; never if the clock cannot represent it.
    pub(crate) fn after(time: Duration) -> Deadline {
        Deadline(Instant::now().checked_add(time))
    }

    /// Returns the time until then.
    pub(crate) fn left(&self) -> Duration {
        self.0.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    /// Returns true if the moment has passed.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

/// Processes that can be ended: those of a command, or survivors of an earlier run.
pub(super) trait Terminate {
    /// Returns true if one of them runs.
    fn lives(&mut self) -> bool;
    /// Sends a signal to all of them.
    fn signal(&mut self, signal: Signal);
}

/// Ends all processes: `SIGTERM`, up to `grace`, then `SIGKILL` until none is left. `pause` waits.
pub(super) fn terminate(
    ending: &mut dyn Terminate,
    grace: Duration,
    pause: &mut dyn FnMut(Duration),
) {
    ending.signal(Signal::TERM);
    // A stopped process receives `SIGTERM` only after it continues.
    ending.signal(Signal::CONT);
    if !lives_after(ending, grace, pause, false) {
        return;
    }
    lives_after(ending, FORCE_TAKES, pause, true);
}

fn lives_after(
    ending: &mut dyn Terminate,
    time: Duration,
    pause: &mut dyn FnMut(Duration),
    force: bool,
) -> bool {
    let end = Deadline::after(time);
    let mut step = Duration::from_millis(1);
    loop {
        if force {
            ending.signal(Signal::KILL);
        }
        if !ending.lives() {
            return false;
        }
        if end.is_over() {
            return true;
        }
        pause(step.min(end.left()));
        step = (step * 2).min(Duration::from_millis(20));
    }
}
