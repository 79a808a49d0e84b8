//! Detects slow calls of agents that run one at a time because no concurrency is declared.

use std::time::Duration;

/// The calls that show how slow an agent is.
const FIRST: u64 = 2;

/// Watches the calls of a stage whose batches run one at a time.
#[derive(Debug)]
pub(crate) struct OneAtATime {
    batches: u64,
    /// The mean duration from which calls are slow.
    slow: Duration,
    calls: u64,
    took_ms: u64,
}

impl OneAtATime {
    /// Starts with the number of batches.
    pub(crate) fn new(batches: u64, slow: Duration) -> Self {
        Self {
            batches,
            slow,
            calls: 0,
            took_ms: 0,
        }
    }

    /// Adds a call, made after this many batches were finished. Returns how many batches wait and the mean duration of calls, once,
    /// if calls are slow and more than one batch waits.
    pub(crate) fn called(&mut self, took_ms: u64, finished: u64) -> Option<(u64, Duration)> {
        self.calls += 1;
        self.took_ms = self.took_ms.saturating_add(took_ms);
        // One batch runs.
        let waiting = self.batches.saturating_sub(finished + 1);
        let mean = Duration::from_millis(self.took_ms / self.calls);
        if self.calls < FIRST || mean < self.slow || waiting < 2 {
            return None;
        }
        self.batches = 0;
        Some((waiting, mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_are_noticed_once_while_batches_wait() {
        let slow = Duration::from_secs(2);
        let mut watched = OneAtATime::new(10, slow);
        assert_eq!(watched.called(5000, 0), None);
        assert_eq!(watched.called(3000, 1), Some((8, Duration::from_secs(4))));
        assert_eq!(watched.called(9000, 2), None);
        // Not if calls are fast, until they are slow on average.
        let mut watched = OneAtATime::new(10, slow);
        assert_eq!(watched.called(10, 0), None);
        assert_eq!(watched.called(10, 1), None);
        assert_eq!(
            watched.called(6000, 2),
            Some((7, Duration::from_millis(2006)))
        );
        // Not if one batch waits.
        let mut watched = OneAtATime::new(3, slow);
        assert_eq!(watched.called(5000, 0), None);
        assert_eq!(watched.called(5000, 1), None);
    }
}
