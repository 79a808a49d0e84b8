//! Failed calls of a model, classified by status, type, code and message.

use milepost_core::base::redact::Redactor;
use milepost_core::model::http_status::StatusClass;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

/// A kind of failure. [`super::policy::after`] decides what to do about each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The key is wrong or lacks a permission.
    Auth,
    /// The account has no credit, or a spending limit is reached.
    Money,
    /// Too many requests or tokens per minute.
    RateLimited,
    /// The service is overloaded.
    Overloaded,
    /// The request exceeds the context window or the service's size limit.
    TooLong,
    /// The request is malformed, or the model does not exist.
    BadRequest,
    /// No connection was made, so the request was not sent.
    Connect,
    /// No answer arrived in time.
    Timeout,
    /// The connection broke before the answer was complete.
    Cut,
    /// An HTTP status that is not 2xx and has no kind of its own here.
    Status(u16),
    /// The response is not an answer in the expected form.
    Unreadable,
    /// The run was stopped.
    Cancelled,
    /// A command-line tool failed for a reason of its own.
    ToolFailed,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallFault {
    /// The kind of failure.
    pub kind: FaultKind,
    /// The HTTP status, if the server answered with one that is not 2xx.
    pub status: Option<u16>,
    /// One line for people, without the key.
    pub message: String,
    /// The provider's own error code or type.
    pub code: Option<String>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The wait that the server asks for.
    pub retry_after: Option<Duration>,
    /// The tokens used, as far as they are known. Truncated answers are paid for too.
    pub usage: Usage,
    /// The cost that the tool itself reports.
    pub reported_cost: Option<NanoUsd>,
    /// The bytes that arrived, with the key removed.
    pub raw: Vec<u8>,
    /// The text that arrived in the events of a stream, joined.
    pub text: Box<str>,
}

impl CallFault {
    /// Creates a fault of this kind without details.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            message: message.into(),
            code: None,
            request_id: None,
            retry_after: None,
            usage: Usage::default(),
            reported_cost: None,
            raw: Vec::new(),
            text: Box::default(),
        }
    }

    /// Removes known keys from the bytes. A key that arrived in pieces cannot be removed from them, so the text replaces them.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor) -> Self {
        if let Cow::Owned(raw) = redactor.known_bytes(&self.raw) {
            self.raw = raw;
        } else if let Cow::Owned(text) = redactor.known_text(&self.text) {
            self.raw = text.into_bytes();
        }
        self
    }

    /// Adds the bytes that arrived.
    #[must_use]
    pub fn with_raw(mut self, raw: Vec<u8>) -> Self {
        self.raw = raw;
        self
    }

    /// Creates the fault for a response whose status is not 2xx. `raw` is its body.
    pub(crate) fn of_status(status: u16, raw: Vec<u8>) -> Self {
        let body = serde_json::from_slice::<Value>(&raw).ok();
        let told = ErrorBody::of(body.as_ref().unwrap_or(&Value::Null));
        let message = match &told.message {
            Some(message) => format!("HTTP {status}: {message}"),
            None => format!("HTTP {status}: {}", beginning(&raw)),
        };
        told.fault(Some(status), message).with_raw(raw)
    }
}

/// The error that a provider or tool reports, in any of their formats.
#[derive(Debug, Default)]
pub(super) struct ErrorBody {
    pub(super) message: Option<String>,
    pub(super) types: Vec<String>,
    pub(super) request_id: Option<String>,
}

impl ErrorBody {
    /// Reads `{"error": {"type", "code", "message", "details": {"error_code"}}, "request_id"}` and its relatives: a bare
    /// string as error (Ollama), or a message at the top (vLLM).
    pub(super) fn of(body: &Value) -> Self {
        let error = match &body["error"] {
            Value::Null => body,
            error => error,
        };
        if let Value::String(message) = error {
            return Self {
                message: Some(one_line(message)),
                ..Self::default()
            };
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let types = [
            &error["details"]["error_code"],
            &error["code"],
            &error["type"],
            &error["status"],
        ];
        Self {
            message: error["message"].as_str().map(one_line),
            types: types.into_iter().filter_map(text).collect(),
            request_id: text(&body["request_id"]),
        }
    }

    /// Returns the fault that follows, with the status if there was one.
    pub(super) fn fault(self, status: Option<u16>, message: String) -> CallFault {
        let said = self.message.as_deref().unwrap_or_default();
        CallFault {
            kind: kind_of(status, &self.types, said),
            status,
            code: self.types.into_iter().next(),
            request_id: self.request_id,
            ..CallFault::new(FaultKind::Unreadable, message)
        }
    }
}

/// Codes and types that mean that there is no money, with any status. Sources: the providers' pages of errors.
const NO_MONEY: [&str; 9] = [
    "enforced_spend_limit_reached",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
];

/// Codes and types that mean that the key is refused, in errors that come without a status: events of a stream, tools.
const BAD_KEY: [&str; 3] = [
    "authentication_error",
    "permission_error",
    "invalid_api_key",
];

/// Codes and types that mean that the request is too long.
const TOO_LONG: [&str; 4] = [
    "context_length_exceeded",
    "request_too_large",
    "exceed_context_size_error",
    "string_above_max_length",
];

/// Parts of messages that report a request that is too long.
const TOO_LONG_WORDS: [&str; 4] = [
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the available context size",
];

/// Codes and types that mean too many requests; the last one is for a batch that must wait for others.
const RATE_LIMITED: [&str; 4] = [
    "rate_limit_error",
    "rate_limit_exceeded",
    "slow_down",
    "token_limit_exceeded",
];

/// Returns the kind of failure, by status, codes and message.
pub(super) fn kind_of(status: Option<u16>, types: &[String], message: &str) -> FaultKind {
    let is = |names: &[&str]| types.iter().any(|told| names.contains(&told.as_str()));
    let says = |words: &[&str]| {
        let message = message.to_lowercase();
        words.iter().any(|word| message.contains(word))
    };
    let class = status.map(StatusClass::of);
    if class == Some(StatusClass::Money) || is(&NO_MONEY) || says(&["credit balance is too low"]) {
        return FaultKind::Money;
    }
    // Where a status came, it alone says whether the key is good.
    if class == Some(StatusClass::Key) || status.is_none() && is(&BAD_KEY) {
        return FaultKind::Auth;
    }
    if class == Some(StatusClass::TooLarge)
        || is(&TOO_LONG)
        || (status.is_none_or(|it| it == 400) && says(&TOO_LONG_WORDS))
    {
        return FaultKind::TooLong;
    }
    if status == Some(429) || is(&RATE_LIMITED) {
        return FaultKind::RateLimited;
    }
    // An invalid request stays invalid, so a retry cannot help, even if the status looks temporary.
    if status.is_some_and(|it| it >= 500) && is(&["invalid_request_error"]) {
        return FaultKind::BadRequest;
    }
    if class == Some(StatusClass::Busy) || is(&["overloaded_error", "server_is_overloaded"]) {
        return FaultKind::Overloaded;
    }
    match status {
        Some(408) => FaultKind::Timeout,
        Some(400 | 404 | 405 | 422) => FaultKind::BadRequest,
        Some(status) => FaultKind::Status(status),
        None if is(&["invalid_request_error", "not_found_error"]) => FaultKind::BadRequest,
        None if is(&["timeout_error"]) => FaultKind::Timeout,
        None => FaultKind::Status(500),
    }
}

/// Returns the words of a text in one line, without control characters.
fn one_line(text: &str) -> String {
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Returns the beginning of a body, as one line.
pub(super) fn beginning(raw: &[u8]) -> String {
    const MOST: usize = 300;
    let text = String::from_utf8_lossy(&raw[..raw.len().min(4 * MOST)]).into_owned();
    let line = one_line(&text);
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "nothing".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, body: &str) -> FaultKind {
        CallFault::of_status(status, body.into()).kind
    }

    #[test]
    fn a_body_tells_more_than_its_status() {
        let spend = r#"{"type":"error","error":{"type":"rate_limit_error","message":"limit",
            "details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"req_1"}"#;
        let fault = CallFault::of_status(429, spend.into());
        let expected = CallFault {
            code: Some("enforced_spend_limit_reached".to_owned()),
            request_id: Some("req_1".to_owned()),
            status: Some(429),
            raw: spend.into(),
            ..CallFault::new(FaultKind::Money, "HTTP 429: limit")
        };
        assert_eq!(fault, expected);
        let low = r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to use the API"}}"#;
        assert_eq!(kind(400, low), FaultKind::Money);
        let long = r#"{"error":{"message":"This model's maximum context length is 8192 tokens","type":"BadRequestError"}}"#;
        assert_eq!(kind(400, long), FaultKind::TooLong);
        let ollama = r#"{"error":"model 'x' not found"}"#;
        let fault = CallFault::of_status(404, ollama.into());
        assert_eq!(
            (fault.kind, fault.message.as_str()),
            (FaultKind::BadRequest, "HTTP 404: model 'x' not found")
        );
        assert_eq!(
            kind(502, "<html>Bad gateway</html>"),
            FaultKind::Status(502)
        );
        assert_eq!(
            CallFault::of_status(500, Vec::new()).message,
            "HTTP 500: nothing"
        );
    }

    #[test]
    fn a_status_alone_says_whether_the_key_is_good() {
        let says = r#"{"error":{"type":"authentication_error","code":"invalid_api_key","message":"HTTP 401: invalid key"}}"#;
        for (status, expected) in [
            (401, FaultKind::Auth),
            (403, FaultKind::Auth),
            (400, FaultKind::BadRequest),
            (404, FaultKind::BadRequest),
            (500, FaultKind::Status(500)),
        ] {
            assert_eq!(kind(status, says), expected, "{status}");
        }
        let types = ["invalid_api_key".to_owned()];
        assert_eq!(kind_of(None, &types, ""), FaultKind::Auth);
    }

    #[test]
    fn a_message_of_many_lines_is_one_line() {
        for says in [
            r#"{"error":{"message":"first,\nsecond \u001b[31m\u2028 third"}}"#,
            r#"{"error":"first,\nsecond \u001b[31m\u2028 third"}"#,
        ] {
            let fault = CallFault::of_status(400, says.into());
            assert_eq!(fault.message, "HTTP 400: first, second [31m third");
        }
    }

    #[test]
    fn long_bodies_are_shortened() {
        let line = beginning("ä \n".repeat(500).as_bytes());
        assert_eq!(line.chars().count(), 301);
    }
}
