//! The machine's own clock: the one place that asks it for the time of day.

#![allow(clippy::disallowed_methods, reason = "the one clock")]

use jiff::Timestamp;

use crate::base::clock::Clock;

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Begins to measure.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// How long it has been.
    pub fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
