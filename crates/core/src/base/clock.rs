//! The time of day, behind a trait: only one module of `store` reads the clock of the machine.

use jiff::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time, in UTC.
    fn now(&self) -> Timestamp;
}

/// A clock that always returns the same time, for tests and for runs with `SOURCE_DATE_EPOCH`.
#[derive(Debug, Clone, Copy)]
pub struct StillClock(pub Timestamp);

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
