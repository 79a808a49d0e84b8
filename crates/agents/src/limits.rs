//! Limits of an agent over all stages of a run: calls at once, requests and tokens a minute.

mod book;

pub use book::{Allowed, Book, Turn};

use super::http::Cancelled;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether the run was cancelled.
const TICK: Duration = Duration::from_millis(25);

/// The limits of one agent, shared by the threads of a run. They are served in the order in which they came, so that a large
/// request is not passed for ever by small ones.
#[derive(Debug)]
pub struct Limits {
    state: Mutex<State>,
    changed: Condvar,
    begun: Instant,
}

#[derive(Debug)]
struct State {
    book: Book,
    next: u64,
    waiting: BTreeSet<u64>,
}

/// The right to make one call. Its place among the calls at once is free again when it is dropped.
#[derive(Debug)]
pub struct Pass<'a> {
    limits: &'a Limits,
    reserved: u64,
}

impl Limits {
    /// Limits that are free to begin with.
    pub fn new(allowed: Allowed) -> Self {
        let state = State {
            book: Book::new(allowed),
            next: 0,
            waiting: BTreeSet::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            begun: monotonic(),
        }
    }

    /// Waits until a call may be made that is likely to use that many tokens, input and output. None when cancelled.
    pub fn enter(&self, tokens: u64, cancelled: Cancelled<'_>) -> Option<Pass<'_>> {
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
                match state.book.ask(now, tokens) {
                    Turn::Go => {
                        state.waiting.remove(&number);
                        self.changed.notify_all();
                        return Some(Pass {
                            limits: self,
                            reserved: tokens,
                        });
                    }
                    Turn::At(moment) => wait = wait.min(moment.saturating_sub(now)),
                    Turn::WhenOneEnds => {}
                }
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets nobody in for that long: the server asked for it.
    pub fn hold(&self, wait: Duration) {
        let until = self.now().saturating_add(wait);
        self.lock().book.hold(until);
    }

    fn now(&self) -> Duration {
        monotonic().saturating_duration_since(self.begun)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// Says how many tokens the call used, in the place of the likely ones.
    pub fn settle(&mut self, used: u64) {
        let now = self.limits.now();
        self.limits.lock().book.settle(now, self.reserved, used);
        self.reserved = used;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.limits.lock().book.end();
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
        let allowed = Allowed {
            concurrent: Some(3),
            ..Allowed::default()
        };
        let (limits, inside, most) = (
            Limits::new(allowed),
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
        let allowed = Allowed {
            concurrent: Some(1),
            ..Allowed::default()
        };
        let limits = Limits::new(allowed);
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
