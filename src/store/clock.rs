//! The machine's own clock: the one place that asks it for the time of day.

use jiff::Timestamp;

use crate::base::clock::Clock;

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
