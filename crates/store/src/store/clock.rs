//! The machine's own clock: the one place that asks it for the time of day.

#![allow(clippy::disallowed_methods, reason = "the one clock")]

use jiff::Timestamp;

use milepost_core::base::clock::Clock;

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

/// The machine's clock, put forward: by it, files that were just written have been left alone for long.
#[derive(Debug, Clone, Copy)]
pub struct ShiftedClock(pub(crate) jiff::SignedDuration);

impl ShiftedClock {
    /// By how many seconds a test wants it. Every release build gives the machine's time as it is.
    pub fn from_setting(seconds: Option<&str>) -> Self {
        let wanted = seconds.filter(|_| cfg!(debug_assertions));
        let seconds = wanted.and_then(|seconds| seconds.parse().ok());
        Self(jiff::SignedDuration::from_secs(seconds.unwrap_or(0)))
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        Timestamp::now() + self.0
    }
}
