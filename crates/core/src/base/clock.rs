//! The time of day, behind a trait, so that nothing but one module of `store` asks the machine.

use jiff::Timestamp;

/// Tells the time of day.
pub trait Clock: Send + Sync {
    /// The present moment, in UTC.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still: for tests, and for runs under `SOURCE_DATE_EPOCH`.
#[derive(Debug, Clone, Copy)]
pub struct StillClock(pub Timestamp);

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
