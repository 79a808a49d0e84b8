//! How an attempt failed.

use super::http_status::StatusClass;
use crate::base::redact::Redactor;
use crate::base::visible::{visible, visible_message};
use crate::expr::jq::Limit;
use crate::expr::scope::ScopeError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The kinds of failure that `[errors]` can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[derive(strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OutcomeKind {
    /// The key is wrong, or lacks a permission.
    Auth,
    /// The call would exceed the budget.
    Budget,
    /// A `[[check]]` was not true.
    Check,
    /// No connection was made, so nothing was sent.
    Connect,
    /// Keys were lost, duplicated or invented.
    Conserve,
    /// The process that read a file ended before it answered.
    Crash,
    /// An answer is incomplete.
    Cut,
    /// No engine could read the text of a PDF.
    Engines,
    /// A program exited with a code other than 0, or was ended by a signal.
    Exit,
    /// An input is missing or could not be read.
    Input,
    /// A job of a cluster ended without a result for its batch.
    Job,
    /// Somebody cancelled the job of the batch.
    JobCancelled,
    /// Work needed more memory than its limit.
    Memory,
    /// The node of a job failed.
    Node,
    /// A step could not parse its input, or an expression failed.
    Parse,
    /// A path left its folder.
    Path,
    /// A step did not write a declared output.
    Output,
    /// The scheduler took the node from a job for a more urgent one.
    Preempted,
    /// The last iteration of `[refine]` did not satisfy `until`.
    Refine,
    /// An agent refused to answer.
    Refused,
    /// A file or answer does not match its schema.
    Schema,
    /// A service answered with an HTTP status other than 2xx.
    Status,
    /// The time limit was exceeded.
    Timeout,
    /// The run was stopped.
    Cancelled,
    /// An external agent must answer first.
    Awaited,
    /// No connection to an agent was made in any attempt.
    Unreachable,
}

impl OutcomeKind {
    /// Returns the kind for a limit that ended a program.
    pub fn of_limit(limit: Limit) -> Self {
        match limit {
            Limit::Memory => Self::Memory,
            Limit::Time | Limit::Steps => Self::Timeout,
            Limit::Crash => Self::Crash,
        }
    }

    /// Returns the name in `[errors]` and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns true if a batch with this outcome waits for something and has not failed.
    pub fn waits(self) -> bool {
        matches!(
            self,
            Self::Cancelled | Self::Budget | Self::Awaited | Self::Unreachable
        )
    }

    /// Returns true if another attempt of the same step could succeed, judging by the kind alone.
    fn is_worth_another_try(self) -> bool {
        !matches!(
            self,
            Self::Auth
                | Self::Awaited
                | Self::Budget
                | Self::Cancelled
                | Self::Engines
                | Self::Input
                | Self::Job
                | Self::JobCancelled
                | Self::Memory
                | Self::Path
                | Self::Refine
        )
    }
}

/// The longest text that is recorded whole, in bytes.
const LONGEST: usize = 8 << 10;

/// The failure of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The kind.
    pub kind: OutcomeKind,
    /// The declared name of the error; without one, the kind in capitals.
    pub code: String,
    /// One line for people.
    pub message: String,
    /// More lines: violations with their pointers, the end of a program's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Whether another attempt may succeed, if the HTTP status decides that and not the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<bool>,
    /// The digest of the facts of a batch that failed after a service accepted a request of it, or may have carried it out. With
    /// these facts no later run sends it, unless a person wants that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The wait that the service asks for.
    #[serde(skip)]
    pub wait: Option<Duration>,
}

impl Outcome {
    /// Returns a failure with the kind's name as its code.
    pub fn new(kind: OutcomeKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: kind.name().to_uppercase(),
            message: message.into(),
            details: Vec::new(),
            passing: None,
            accepted: None,
            wait: None,
        }
    }

    /// Returns the failure for an HTTP status, which decides whether another attempt may succeed.
    pub fn of_status(status: u16, message: impl Into<String>) -> Self {
        Self {
            passing: Some(StatusClass::of(status).is_retried()),
            ..Self::new(OutcomeKind::Status, message)
        }
    }

    /// Returns true if another attempt may succeed.
    pub fn is_worth_another_try(&self) -> bool {
        self.passing
            .unwrap_or_else(|| self.kind.is_worth_another_try())
    }

    /// Returns true if work was ended by a limit of memory, stack or time, and so has no result.
    pub fn is_about_limits(&self) -> bool {
        matches!(
            self.kind,
            OutcomeKind::Memory | OutcomeKind::Crash | OutcomeKind::Timeout
        )
    }

    /// Marks the failure as final: no other attempt would succeed.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.passing = Some(false);
        self
    }

    /// Returns the outcome as it is recorded and shown: without keys, and with long texts shortened.
    #[must_use]
    pub fn for_record(mut self, redactor: &Redactor) -> Self {
        for text in std::iter::once(&mut self.message).chain(&mut self.details) {
            if let Cow::Owned(hidden) = redactor.text(text) {
                *text = hidden;
            }
            // A key that is cut in two would not be found.
            if text.len() > LONGEST {
                let begin = &text[..text.floor_char_boundary(LONGEST / 2)];
                let end = &text[text.ceil_char_boundary(text.len() - LONGEST / 4)..];
                *text = format!("{begin} […] {end}");
            }
        }
        self
    }

    /// Adds details.
    #[must_use]
    pub fn with_details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }
}

impl From<ScopeError> for Outcome {
    fn from(error: ScopeError) -> Self {
        Self::new(OutcomeKind::Input, error.to_string())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            visible(&self.code),
            visible_message(&self.message)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_short_and_has_no_keys() {
        let redactor = Redactor::new(["a-long-secret-key".to_owned()]);
        let long = format!(
            "{}a-long-secret-key{}!",
            "é".repeat(2044),
            "é".repeat(1 << 20)
        );
        let outcome = Outcome::new(OutcomeKind::Input, long.clone()).with_details(vec![long]);
        let recorded = outcome.for_record(&redactor);
        for text in [&recorded.message, &recorded.details[0]] {
            assert!(text.len() < LONGEST, "{}", text.len());
            assert!(
                text.contains("é[key]é") && text.contains(" […] é") && text.ends_with("é!"),
                "{text}"
            );
        }
        let short = Outcome::new(OutcomeKind::Input, "short");
        assert_eq!(short.clone().for_record(&redactor), short);
    }

    #[test]
    fn a_status_says_whether_to_try_again() {
        let again = |status| Outcome::of_status(status, "").is_worth_another_try();
        for status in [408, 409, 425, 429, 500, 502, 503, 529] {
            assert!(again(status), "{status}");
        }
        for status in [301, 400, 401, 403, 404, 422] {
            assert!(!again(status), "{status}");
        }
        assert!(Outcome::new(OutcomeKind::Connect, "").is_worth_another_try());
        assert!(
            !Outcome::new(OutcomeKind::Connect, "")
                .for_good()
                .is_worth_another_try()
        );
        assert!(!Outcome::new(OutcomeKind::Budget, "").is_worth_another_try());
    }
}
