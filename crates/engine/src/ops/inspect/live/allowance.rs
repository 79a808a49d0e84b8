//! How much time following a run may take.

use milepost_store::store::clock::Stopwatch;
use std::time::Duration;

/// Following a run may take one part in this many of its time.
const SHARE: u32 = 100;

/// The time that may be spent at once after a pause.
const BURST: Duration = Duration::from_millis(50);

/// A budget of time that is refilled while time passes.
#[derive(Debug)]
pub(super) struct Allowance {
    watch: Stopwatch,
    used: Duration,
}

impl Allowance {
    pub(super) fn start() -> Self {
        Self {
            watch: Stopwatch::start(),
            used: Duration::ZERO,
        }
    }

    /// Returns true if something of the budget is left.
    pub(super) fn has_time(&self) -> bool {
        self.used < self.refilled() + BURST
    }

    /// Takes time from the budget, which may owe it afterwards.
    pub(super) fn spend(&mut self, took: Duration) {
        self.used = self.used.max(self.refilled()) + took;
    }

    fn refilled(&self) -> Duration {
        self.watch.elapsed() / SHARE
    }
}
