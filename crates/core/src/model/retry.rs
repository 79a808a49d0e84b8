//! How long to wait before a failed request is sent again: one rule for calls of models, provider batches and steps.

use crate::base::digest::Digest;
use std::time::Duration;

/// The longest wait that a service may ask for. If it asks for more, the request fails, and another run sends it.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// The longest wait without a request of the service.
const LONGEST: Duration = Duration::from_mins(1);

/// Returns how long to wait after the given failed try (from 1 on).
///
/// The wait doubles from `first` to a minute. Half of it is fixed, and `jitter` from 0 to 1 takes a share of the other half, so
/// that callers who failed together do not come back together. A wait that the service `asked` for is never undercut: `jitter`
/// adds a share of `first` to it.
pub fn wait(first: Duration, failed: u32, asked: Option<Duration>, jitter: f64) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(failed.saturating_sub(1)));
    let half = doubled.min(LONGEST) / 2;
    let jitter = if jitter.is_finite() {
        jitter.clamp(0.0, 1.0)
    } else {
        0.0
    };
    match asked {
        Some(asked) => asked.saturating_add(first.mul_f64(jitter)).max(half),
        None => half + half.mul_f64(jitter),
    }
}

/// Returns true if a service requests a wait of more than 10 minutes: the request is then not sent again.
pub fn is_too_long(asked: Option<Duration>) -> bool {
    asked.is_some_and(|wait| wait > LONGEST_WAIT)
}

/// Returns a jitter from 0 to 1, the same one each time for the same name and number.
pub fn jitter(name: &str, number: u32) -> f64 {
    f64::from(Digest::of(format!("{name} {number}")).bytes()[0]) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_a_minute_with_a_little_more() {
        let first = Duration::from_secs(1);
        for (failed, most) in [(1, 1), (2, 2), (3, 4), (7, 60), (40, 60), (u32::MAX, 60)] {
            let most = Duration::from_secs(most);
            assert_eq!(wait(first, failed, None, 0.0), most / 2);
            assert_eq!(wait(first, failed, None, 1.0), most);
            let jitter = jitter("classify/batch_1", failed);
            let wait = wait(first, failed, None, jitter);
            assert!((most / 2..=most).contains(&wait), "{failed}: {wait:?}");
        }
    }

    #[test]
    fn a_wait_that_was_asked_for_is_not_undercut() {
        let first = Duration::from_secs(2);
        let asked = Some(Duration::from_secs(7));
        for (failed, jitter, seconds) in [(1, 0.0, 7), (1, 1.0, 9), (5, 0.0, 16)] {
            let wait = wait(first, failed, asked, jitter);
            assert_eq!(wait, Duration::from_secs(seconds));
        }
        assert_eq!(wait(Duration::ZERO, 3, asked, 0.5), Duration::from_secs(7));
        assert_eq!(wait(Duration::ZERO, 3, None, f64::NAN), Duration::ZERO);
        assert!(!is_too_long(Some(LONGEST_WAIT)));
        assert!(is_too_long(Some(LONGEST_WAIT + Duration::from_secs(1))));
    }
}
