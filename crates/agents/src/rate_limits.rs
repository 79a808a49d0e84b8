//! Rate limits of an agent over all stages of a run: concurrent calls, requests per minute and tokens per minute.

mod ledger;

pub use ledger::{Admission, RateLimits, UsageLedger};

use super::http::Cancelled;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting thread checks whether the run was cancelled.
const TICK: Duration = Duration::from_millis(25);

/// Enforces the limits of one agent for all threads of a run. Threads are served in the order of their arrival, so that small
/// requests do not delay a large one forever.
#[derive(Debug)]
pub struct RateLimiter {
    state: Mutex<LimiterState>,
    changed: Condvar,
    begun: Instant,
}

#[derive(Debug)]
struct LimiterState {
    ledger: UsageLedger,
    next: u64,
    waiting: BTreeSet<u64>,
}

/// The permission to make one call. Dropping it ends the call as far as the limit of concurrent calls is concerned.
#[derive(Debug)]
pub struct CallPermit<'a> {
    limits: &'a RateLimiter,
    reserved: u64,
}

impl RateLimiter {
    /// Creates a limiter with full limits and no call running.
    pub fn new(allowed: RateLimits) -> Self {
        let state = LimiterState {
            ledger: UsageLedger::new(allowed),
            next: 0,
            waiting: BTreeSet::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            begun: monotonic(),
        }
    }

    /// Waits until a call with about this many tokens (input and output) may be made. Returns `None` if the run is cancelled.
    pub fn enter(&self, tokens: u64, cancelled: Cancelled<'_>) -> Option<CallPermit<'_>> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number);
        loop {
            if cancelled() {
                state.waiting.remove(&number);
                self.changed.notify_all();
                return None;
            }
            let mut wait = TICK;
            if state.waiting.first() == Some(&number) {
                let now = self.now();
                match state.ledger.ask(now, tokens) {
                    Admission::Go => {
                        state.waiting.remove(&number);
                        self.changed.notify_all();
                        return Some(CallPermit {
                            limits: self,
                            reserved: tokens,
                        });
                    }
                    Admission::At(moment) => wait = wait.min(moment.saturating_sub(now)),
                    Admission::AfterRunningCall => {}
                }
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Permits no call for this time; the server requested it.
    pub fn hold(&self, wait: Duration) {
        let until = self.now().saturating_add(wait);
        self.lock().ledger.hold(until);
    }

    fn now(&self) -> Duration {
        monotonic().saturating_duration_since(self.begun)
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPermit<'_> {
    /// Replaces the estimated tokens of the call by the tokens that it used.
    pub fn settle(&mut self, used: u64) {
        let now = self.limits.now();
        self.limits.lock().ledger.settle(now, self.reserved, used);
        self.reserved = used;
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.limits.lock().ledger.end();
        self.limits.changed.notify_all();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long to wait is measured by the monotonic clock: a wall clock that is set or stands still must not end or prolong it"
)]
fn monotonic() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn calls_at_once_are_bounded() {
        let allowed = RateLimits {
            concurrent: Some(3),
            ..RateLimits::default()
        };
        let (limits, inside, most) = (
            RateLimiter::new(allowed),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let mut pass = limits.enter(10, &|| false).unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    pass.settle(20);
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 3);
    }

    #[test]
    fn whoever_waits_can_be_cancelled() {
        let allowed = RateLimits {
            concurrent: Some(1),
            ..RateLimits::default()
        };
        let limits = RateLimiter::new(allowed);
        let pass = limits.enter(1, &|| false).unwrap();
        assert!(limits.enter(1, &|| true).is_none());
        limits.hold(Duration::from_hours(1));
        drop(pass);
        let asked = AtomicUsize::new(0);
        assert!(
            limits
                .enter(1, &|| asked.fetch_add(1, Ordering::SeqCst) > 1)
                .is_none()
        );
    }
}
