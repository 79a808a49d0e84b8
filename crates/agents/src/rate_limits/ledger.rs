//! The ledger of a rate limiter: whether a call may be made now, and when the next one may. Callers pass the time.

use std::time::Duration;

/// The limits of an agent; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Concurrent calls.
    pub concurrent: Option<u32>,
    /// Requests per minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, input and output together.
    pub tokens_per_minute: Option<u64>,
}

/// The answer to the question whether a call may be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Yes. The call is booked.
    Go,
    /// Not before this time, counted from the start of the ledger.
    At(Duration),
    /// Not before a running call has ended.
    AfterRunningCall,
}

/// A minute, in the unit in which buckets are filled: a limit of N a minute fills one by N units in a nanosecond, exactly.
const MINUTE: i128 = 60_000_000_000;

/// The rest of a limit: it fills steadily up to a minute's worth, as the providers' own do.
#[derive(Debug, Clone)]
struct Bucket {
    a_minute: i128,
    level: i128,
}

impl Bucket {
    fn new(a_minute: u64) -> Self {
        let a_minute = i128::from(a_minute.max(1));
        Self {
            a_minute,
            level: a_minute * MINUTE,
        }
    }

    fn fill(&mut self, passed: Duration) {
        let added = self.a_minute.saturating_mul(passed.as_nanos() as i128);
        self.level = self.level.saturating_add(added).min(self.a_minute * MINUTE);
    }

    /// How long until that many are there. More than a minute's worth is let through when the bucket is full.
    fn wait(&self, many: u64) -> Duration {
        let wanted = i128::from(many).min(self.a_minute) * MINUTE;
        let missing = (wanted - self.level).max(0);
        let nanos = (missing + self.a_minute - 1) / self.a_minute;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn take(&mut self, many: i128) {
        let taken = many.saturating_mul(MINUTE);
        self.level = self.level.saturating_sub(taken).min(self.a_minute * MINUTE);
    }
}

/// The running calls and what is left of each limit.
#[derive(Debug, Clone)]
pub struct UsageLedger {
    concurrent: Option<u32>,
    running: u32,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    now: Duration,
    not_before: Duration,
}

impl UsageLedger {
    /// Creates a ledger with no running call and full limits.
    pub(crate) fn new(allowed: RateLimits) -> Self {
        Self {
            concurrent: allowed.concurrent.map(|many| many.max(1)),
            running: 0,
            requests: allowed
                .requests_per_minute
                .map(|many| Bucket::new(u64::from(many))),
            tokens: allowed.tokens_per_minute.map(Bucket::new),
            now: Duration::ZERO,
            not_before: Duration::ZERO,
        }
    }

    /// Books a call with about this many tokens if the limits allow it now.
    pub(crate) fn ask(&mut self, now: Duration, tokens: u64) -> Admission {
        self.pass(now);
        if self.concurrent.is_some_and(|most| self.running >= most) {
            return Admission::AfterRunningCall;
        }
        let wait = |bucket: &Option<Bucket>, many| {
            bucket
                .as_ref()
                .map_or(Duration::ZERO, |bucket| bucket.wait(many))
        };
        let wait = wait(&self.requests, 1).max(wait(&self.tokens, tokens));
        let moment = self.now.saturating_add(wait).max(self.not_before);
        if moment > self.now {
            return Admission::At(moment);
        }
        self.running += 1;
        take(&mut self.requests, 1);
        take(&mut self.tokens, i128::from(tokens));
        Admission::Go
    }

    /// Replaces the booked tokens of a call by the tokens that it used.
    pub(crate) fn settle(&mut self, now: Duration, booked: u64, used: u64) {
        self.pass(now);
        take(&mut self.tokens, i128::from(used) - i128::from(booked));
    }

    /// Records that one call has ended.
    pub(crate) fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Permits no call before this time.
    pub(crate) fn hold(&mut self, until: Duration) {
        self.not_before = self.not_before.max(until);
    }

    /// Fills the limits for the time that has passed. The time never goes back.
    fn pass(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        for bucket in [&mut self.requests, &mut self.tokens].into_iter().flatten() {
            bucket.fill(passed);
        }
    }
}

fn take(bucket: &mut Option<Bucket>, many: i128) {
    if let Some(bucket) = bucket {
        bucket.take(many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn requests_a_minute() {
        let mut ledger = UsageLedger::new(RateLimits {
            requests_per_minute: Some(2),
            ..RateLimits::default()
        });
        assert_eq!(ledger.ask(seconds(0), 0), Admission::Go);
        assert_eq!(ledger.ask(seconds(0), 0), Admission::Go);
        assert_eq!(ledger.ask(seconds(0), 0), Admission::At(seconds(30)));
        assert_eq!(ledger.ask(seconds(10), 0), Admission::At(seconds(30)));
        assert_eq!(ledger.ask(seconds(30), 0), Admission::Go);
        assert_eq!(ledger.ask(seconds(30), 0), Admission::At(seconds(60)));
        // A clock that goes back changes nothing.
        assert_eq!(ledger.ask(seconds(5), 0), Admission::At(seconds(60)));
        assert_eq!(ledger.ask(seconds(600), 0), Admission::Go);
    }

    #[test]
    fn tokens_are_reserved_and_corrected() {
        let mut ledger = UsageLedger::new(RateLimits {
            tokens_per_minute: Some(6_000),
            ..RateLimits::default()
        });
        assert_eq!(ledger.ask(seconds(0), 4_000), Admission::Go);
        assert_eq!(ledger.ask(seconds(0), 4_000), Admission::At(seconds(20)));
        // It used less: the next may go.
        ledger.settle(seconds(0), 4_000, 1_000);
        assert_eq!(ledger.ask(seconds(0), 4_000), Admission::Go);
        // It used more: the debt is paid first.
        ledger.settle(seconds(0), 4_000, 6_000);
        assert_eq!(ledger.ask(seconds(0), 1_000), Admission::At(seconds(20)));
        // More than a minute's worth goes when nothing else is booked.
        assert_eq!(ledger.ask(seconds(20), 9_000), Admission::At(seconds(70)));
        assert_eq!(ledger.ask(seconds(70), 9_000), Admission::Go);
        assert_eq!(
            ledger.ask(seconds(70), 1),
            Admission::At(seconds(100) + Duration::from_millis(10))
        );
    }

    #[test]
    fn calls_at_once_and_a_servers_wait() {
        let mut ledger = UsageLedger::new(RateLimits {
            concurrent: Some(1),
            ..RateLimits::default()
        });
        assert_eq!(ledger.ask(seconds(0), 0), Admission::Go);
        assert_eq!(ledger.ask(seconds(0), 0), Admission::AfterRunningCall);
        ledger.end();
        ledger.hold(seconds(9));
        ledger.hold(seconds(3));
        assert_eq!(ledger.ask(seconds(1), 0), Admission::At(seconds(9)));
        assert_eq!(ledger.ask(seconds(9), 0), Admission::Go);
    }
}
