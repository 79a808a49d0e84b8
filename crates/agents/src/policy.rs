//! The policy for a failed call of an agent: retry, stop, split or give up. `model::http_status` lists the HTTP statuses that are
//! retried, and `model::retry` computes the wait.

use super::cli::NOT_FOUND;
use super::fault::{CallFault, FaultKind};
use milepost_core::model::http_status::StatusClass;
use milepost_core::model::retry;
use std::time::Duration;

/// The action after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Send the same request again.
    Retry {
        /// The time to wait first.
        wait: Duration,
    },
    /// Send no further request to this agent: the key is refused, the money is spent, or the run was stopped.
    Stop,
    /// Split the request, because it is too long.
    Shrink,
    /// Give this request up. Other requests may succeed.
    Fail,
}

/// The first wait; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// The first wait where the service itself has too much to do.
const FIRST_WHEN_BUSY: Duration = Duration::from_secs(2);

/// Returns what to do about a fault of an attempt, counted from 1. `jitter`, from 0 to 1, spreads the waits ([`retry::wait`]).
/// A request is given up if the server asks for too long a wait. The caller limits the number of attempts.
pub fn after(fault: &CallFault, attempt: u32, jitter: f64) -> Next {
    let first = match fault.kind {
        FaultKind::Auth | FaultKind::Money | FaultKind::Cancelled => return Next::Stop,
        FaultKind::TooLong => return Next::Shrink,
        _ if is_final(fault.kind) || retry::is_too_long(fault.retry_after) => return Next::Fail,
        // A tool reaches its own limit (turns, money) again, and a tool that is missing stays missing.
        FaultKind::ToolFailed
            if fault
                .code
                .as_deref()
                .is_some_and(|code| code.starts_with("error_max") || code == NOT_FOUND) =>
        {
            return Next::Fail;
        }
        FaultKind::RateLimited | FaultKind::Overloaded => FIRST_WHEN_BUSY,
        FaultKind::BadRequest
        | FaultKind::Connect
        | FaultKind::Timeout
        | FaultKind::Cut
        | FaultKind::Status(_)
        | FaultKind::Unreadable
        | FaultKind::ToolFailed => FIRST,
    };
    Next::Retry {
        wait: retry::wait(first, attempt, fault.retry_after, jitter),
    }
}

/// Returns true if the same request would be refused again.
pub fn is_final(kind: FaultKind) -> bool {
    match kind {
        FaultKind::BadRequest | FaultKind::TooLong => true,
        FaultKind::Status(status) => !StatusClass::of(status).is_retried(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_status(status: u16, body: &str) -> Next {
        after(&CallFault::of_status(status, body.into()), 1, 0.5)
    }

    fn again(millis: u64) -> Next {
        Next::Retry {
            wait: Duration::from_millis(millis),
        }
    }

    #[test]
    fn a_429_about_money_is_not_tried_again() {
        let anthropic = r#"{"type":"error","error":{"type":"rate_limit_error","message":"","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        assert_eq!(after_status(429, anthropic), Next::Stop);
        for code in [
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
        ] {
            let body = format!(
                r#"{{"error":{{"type":"insufficient_quota","code":"{code}","message":""}}}}"#
            );
            assert_eq!(after_status(429, &body), Next::Stop, "{code}");
        }
        assert_eq!(
            after_status(402, r#"{"error":{"type":"billing_error","message":""}}"#),
            Next::Stop
        );
        let rate = r#"{"error":{"type":"requests","code":"rate_limit_exceeded","message":""}}"#;
        assert_eq!(after_status(429, rate), again(1_500));
    }

    #[test]
    fn each_status_has_its_consequence() {
        let cases = [
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                again(1_500),
            ),
            (
                503,
                r#"{"error":{"code":"server_is_overloaded","message":""}}"#,
                again(1_500),
            ),
            (
                500,
                r#"{"type":"error","error":{"type":"api_error","message":""}}"#,
                again(750),
            ),
            (502, "<html>", again(750)),
            (408, "", again(750)),
            (409, "", again(750)),
            (
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":""}}"#,
                Next::Stop,
            ),
            (403, "", Next::Stop),
            (413, "", Next::Shrink),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded","message":""}}"#,
                Next::Shrink,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens"}}"#,
                Next::Shrink,
            ),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","message":"temperature"}}"#,
                Next::Fail,
            ),
            (404, "", Next::Fail),
            (301, "", Next::Fail),
        ];
        for (status, body, next) in cases {
            assert_eq!(after_status(status, body), next, "{status} {body}");
        }
    }

    #[test]
    fn what_is_final_fails_and_nothing_else_does() {
        for status in [400, 404, 410, 301, 422] {
            let fault = CallFault::of_status(status, Vec::new());
            assert!(is_final(fault.kind), "{status}");
            assert_eq!(after(&fault, 1, 0.5), Next::Fail, "{status}");
        }
        for status in [401, 402, 408, 409, 425, 429, 500, 502, 503, 529] {
            let fault = CallFault::of_status(status, Vec::new());
            assert!(!is_final(fault.kind), "{status}");
            assert_ne!(after(&fault, 1, 0.5), Next::Fail, "{status}");
        }
    }

    #[test]
    fn waits_double_and_keep_to_the_server() {
        let fault = CallFault::new(FaultKind::Overloaded, "");
        let waits: Vec<Next> = (1..=8).map(|attempt| after(&fault, attempt, 0.0)).collect();
        let expected = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000];
        assert_eq!(waits, expected.map(again));
        assert_eq!(after(&fault, u32::MAX, 1.0), again(60_000));
        let told = CallFault {
            retry_after: Some(Duration::from_secs(7)),
            ..fault
        };
        assert_eq!(after(&told, 1, 0.0), again(7_000));
        assert_eq!(after(&told, 1, 1.0), again(9_000));
        assert_eq!(after(&told, 5, 0.0), again(16_000));
        let told = |seconds| CallFault {
            retry_after: Some(Duration::from_secs(seconds)),
            ..CallFault::new(FaultKind::RateLimited, "")
        };
        assert_eq!(after(&told(600), 1, 0.0), again(600_000));
        assert_eq!(after(&told(601), 1, 0.0), Next::Fail);
    }

    #[test]
    fn the_rest_by_kind() {
        let next = |kind| after(&CallFault::new(kind, ""), 1, 0.0);
        assert_eq!(next(FaultKind::Cancelled), Next::Stop);
        for kind in [
            FaultKind::Connect,
            FaultKind::Timeout,
            FaultKind::Cut,
            FaultKind::Unreadable,
            FaultKind::ToolFailed,
        ] {
            assert_eq!(next(kind), again(500), "{kind:?}");
        }
        let turns = CallFault {
            code: Some("error_max_turns".to_owned()),
            ..CallFault::new(FaultKind::ToolFailed, "")
        };
        assert_eq!(after(&turns, 1, 0.0), Next::Fail);
    }
}
