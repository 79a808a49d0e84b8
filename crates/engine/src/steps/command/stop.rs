//! The ladder by which running things are ended: asked, given time, ended by force.

#![allow(
    clippy::disallowed_methods,
    reason = "deadlines of programs are measured where they are kept"
)]

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// How long processes that got `SIGKILL` may take to go before they are given up: longer only if they hang in the kernel.
const FORCE_TAKES: Duration = Duration::from_secs(5);

/// Whether the run is to stop, as everything that waits must know it.
pub trait StopSignal: Sync {
    /// Whether to stop.
    fn stopping(&self) -> bool;
    /// Waits this long, or until it is time to stop.
    fn wait(&self, time: Duration);
}

/// A moment in the future, by the monotonic clock: a wall clock that is set must not end a command.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// In this long; never, if that is beyond what the clock can say.
    pub(crate) fn after(time: Duration) -> Deadline {
        Deadline(Instant::now().checked_add(time))
    }

    /// Time until then.
    pub(crate) fn left(&self) -> Duration {
        self.0.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    /// Whether it has come.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

/// What can be ended: the family of a command of ours, or what a dead runner left.
pub(super) trait Terminate {
    /// Whether anything of it still runs.
    fn lives(&mut self) -> bool;
    /// Sends a signal to all of it.
    fn signal(&mut self, signal: Signal);
}

/// Ends it all: `SIGTERM`, up to `grace`, then `SIGKILL` until nothing is left (whoever is started in the meantime gets it in the
/// next round). `pause` waits.
pub(super) fn terminate(
    ending: &mut dyn Terminate,
    grace: Duration,
    pause: &mut dyn FnMut(Duration),
) {
    ending.signal(Signal::TERM);
    // One that is stopped would take the request only after it was continued.
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
