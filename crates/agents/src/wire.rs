//! What the providers' APIs have in common: an address, a key in a header, and faults told by status.

use super::client::Settings;
use super::fault::{CallFault, FaultKind, beginning};
use super::http::{Answer, Cancelled, Http, Send};
use super::secret::Secret;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a key is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// `x-api-key: KEY`.
    Named,
    /// `authorization: Bearer KEY`.
    Bearer,
}

/// One provider's address and key.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    http: Arc<Http>,
    base: String,
    secret: Secret,
    key: Key,
    headers: &'static [(&'static str, &'static str)],
    /// How long the server's last answer wants no further one, where a limit is used up.
    rest: Arc<Mutex<Option<Duration>>>,
}

/// What is asked for.
pub(super) struct Ask<'a> {
    /// Follows the base address.
    pub(super) path: &'a str,
    /// What is posted, and its type; None for a GET.
    pub(super) post: Option<(&'a str, Vec<u8>)>,
    pub(super) within: Duration,
    pub(super) largest: usize,
}

impl Wire {
    pub(super) fn new(
        http: Arc<Http>,
        base: String,
        settings: &Settings,
        key: Key,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        let secret = settings.key.clone();
        Self {
            http,
            base,
            secret,
            key,
            headers,
            rest: Arc::default(),
        }
    }

    /// How long to ask nothing further, by what answers told since this was last asked.
    pub(super) fn rest(&self) -> Option<Duration> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.take()
    }

    /// Asks, and gives a 2xx answer; it may be cut. The key is taken out of it.
    pub(super) fn ask(&self, ask: Ask<'_>, cancelled: Cancelled<'_>) -> Result<Answer, CallFault> {
        let url = format!("{}{}", self.base, ask.path);
        let bearer = format!("Bearer {}", self.secret.expose());
        let mut headers = self.headers.to_vec();
        if !self.secret.is_empty() {
            headers.push(match self.key {
                Key::Named => ("x-api-key", self.secret.expose()),
                Key::Bearer => ("authorization", &bearer),
            });
        }
        let body = ask.post.map(|(kind, body)| {
            headers.push(("content-type", kind));
            body
        });
        let send = Send {
            url: &url,
            headers: &headers,
            body,
            within: ask.within,
            largest: ask.largest,
        };
        let answer = self.http.send(send, cancelled).map_err(|fault| CallFault {
            message: self.secret.hide(&fault.message),
            ..fault
        })?;
        let answer = Answer {
            body: self.secret.hide_in(answer.body),
            ..answer
        };
        if let Some(wait) = answer.rest() {
            let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
            *rest = Some(rest.unwrap_or_default().max(wait));
        }
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        // What stopped an error's body from being read whole says less than the error.
        let retry_after = answer.retry_after();
        let id = answer.request_id();
        let moved = answer
            .header("location")
            .map(|to| format!("; it points to {to}: make that the base URL, if it is right"));
        let fault = CallFault::of_status(answer.status, answer.body);
        let fault = CallFault {
            retry_after,
            request_id: fault.request_id.clone().or(id),
            message: fault.message.clone() + &moved.unwrap_or_default(),
            ..fault
        };
        Err(fault)
    }

    /// Asks for the list of models, which costs nothing: a key that is refused is refused there. A server without such a list
    /// (404, 405) refuses nobody.
    ///
    /// # Errors
    /// `Auth` if the key is refused; otherwise the reason why that is not known.
    pub(super) fn check(
        &self,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<(), CallFault> {
        let ask = Ask {
            path: "/models",
            post: None,
            within,
            largest: 8 << 20,
        };
        match self.ask(ask, cancelled) {
            Ok(_) => Ok(()),
            Err(fault) if matches!(fault.status, Some(404 | 405)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// What is asked for, as JSON. An answer that is cut is a fault.
    pub(super) fn json(&self, ask: Ask<'_>, cancelled: Cancelled<'_>) -> Result<Value, CallFault> {
        parsed(&whole(self.ask(ask, cancelled)?)?.body)
    }
}

/// The answer, if its body is whole.
pub(super) fn whole(mut answer: Answer) -> Result<Answer, CallFault> {
    match answer.cut.take() {
        Some(fault) => Err(CallFault {
            request_id: answer.request_id(),
            raw: answer.body,
            ..fault
        }),
        None => Ok(answer),
    }
}

/// JSON, or what it is instead: a body that ends too early is cut, even if the connection did not say so.
pub(super) fn parsed(body: &[u8]) -> Result<Value, CallFault> {
    serde_json::from_slice(body).map_err(|error| {
        let fault = if error.is_eof() {
            CallFault::new(
                FaultKind::Cut,
                format!("the answer ends too early, after {} bytes", body.len()),
            )
        } else {
            let message = format!("the answer is no JSON ({error}): {}", beginning(body));
            CallFault::new(FaultKind::Unreadable, message)
        };
        fault.with_raw(body.to_vec())
    })
}

/// A count in an answer; what is missing is 0.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A text in an answer.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
