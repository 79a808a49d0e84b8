//! The system clock: the only place that reads the time of day.

#![allow(clippy::disallowed_methods, reason = "the one clock")]

use jiff::Timestamp;

use milepost_core::base::clock::Clock;

#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The system clock shifted forward, so that in tests files that were just written count as old.
#[derive(Debug, Clone, Copy)]
pub struct ShiftedClock(pub(crate) jiff::SignedDuration);

impl ShiftedClock {
    /// Creates a clock from the number of seconds that a test sets. Release builds ignore the setting.
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
