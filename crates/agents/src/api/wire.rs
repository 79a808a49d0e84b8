//! The common part of all providers' clients: an address, a key in a header, JSON bodies, and faults by status.

use super::settings::ClientSettings;
use crate::fault::{CallFault, FaultKind, beginning};
use crate::http::{CallLimit, Http, HttpRequest, HttpResponse, LARGEST};
use crate::secret::Secret;
use milepost_core::base::redact::Redactor;
use milepost_core::expr::json;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The header that carries the key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyHeader {
    /// `x-api-key: KEY`.
    XApiKey,
    /// `authorization: Bearer KEY`.
    Bearer,
}

/// A provider's address and key.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    http: Arc<Http>,
    base: String,
    secret: Secret,
    redactor: Redactor,
    key: KeyHeader,
    headers: &'static [(&'static str, &'static str)],
    /// How long the server's last answer wants no further request, where a limit is used up.
    rest: Arc<Mutex<Option<Duration>>>,
}

/// A request to a provider.
pub(super) struct WireRequest<'a> {
    /// Follows the base address.
    path: &'a str,
    /// Media type and bytes of the body; `None` for a GET.
    post: Option<(&'a str, Vec<u8>)>,
    /// The largest answer that is read, in bytes.
    largest: usize,
}

/// The largest answer that describes a batch, a file or a list of them, in bytes.
const SMALL: usize = 1 << 20;

impl<'a> WireRequest<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self {
            path,
            post: None,
            largest: SMALL,
        }
    }

    pub(super) fn post(path: &'a str, kind: &'a str, body: Vec<u8>) -> Self {
        Self {
            post: Some((kind, body)),
            ..Self::get(path)
        }
    }

    pub(super) fn json(path: &'a str, body: Vec<u8>) -> Self {
        Self::post(path, "application/json", body)
    }

    /// Allows an answer of at most this many bytes.
    pub(super) fn largest(self, largest: usize) -> Self {
        Self { largest, ..self }
    }
}

impl Wire {
    pub(super) fn new(
        http: Arc<Http>,
        base: String,
        settings: &ClientSettings,
        key: KeyHeader,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            http,
            base,
            secret: settings.key.clone(),
            redactor: settings.key.redactor(),
            key,
            headers,
            rest: Arc::default(),
        }
    }

    /// Returns and clears the pause that answers since the last call requested.
    pub(super) fn cooldown(&self) -> Option<Duration> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.take()
    }

    /// Sends a request and returns a 2xx answer, which may be cut, without the key.
    pub(super) fn send(
        &self,
        request: WireRequest<'_>,
        limit: CallLimit<'_>,
    ) -> Result<HttpResponse, CallFault> {
        let url = format!("{}{}", self.base, request.path);
        let bearer = format!("Bearer {}", self.secret.expose());
        let mut headers = self.headers.to_vec();
        if !self.secret.is_empty() {
            headers.push(match self.key {
                KeyHeader::XApiKey => ("x-api-key", self.secret.expose()),
                KeyHeader::Bearer => ("authorization", &bearer),
            });
        }
        let body = request.post.map(|(kind, body)| {
            headers.push(("content-type", kind));
            body
        });
        let send = HttpRequest {
            url: &url,
            headers: &headers,
            body,
            within: limit.within,
            largest: request.largest,
        };
        let answer = self
            .http
            .send(send, limit.cancelled)
            .map_err(|fault| CallFault {
                message: self.redactor.known_text(&fault.message).into_owned(),
                ..fault
            })?;
        let answer = answer.without_keys(&self.redactor);
        if let Some(wait) = answer.cooldown() {
            let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
            *rest = Some(rest.unwrap_or_default().max(wait));
        }
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        // Report the status even if the body of the error is incomplete.
        let retry_after = answer.retry_after();
        let id = answer.request_id();
        let moved = answer
            .header("location")
            .map(|to| format!("; it redirects to {to}: if that is right, use it as `base_url`"));
        let fault = CallFault::of_status(answer.status, answer.body);
        let fault = CallFault {
            retry_after,
            request_id: fault.request_id.clone().or(id),
            message: fault.message.clone() + &moved.unwrap_or_default(),
            ..fault
        };
        Err(fault)
    }

    /// Requests the list of models, which costs nothing, to check the key. A server without such a list (404, 405) passes the
    /// check.
    ///
    /// # Errors
    /// `Auth` if the key is refused; another kind if the check itself failed.
    pub(super) fn check(&self, limit: CallLimit<'_>) -> Result<(), CallFault> {
        let models = WireRequest::get("/models").largest(8 << 20);
        match self.send(models, limit) {
            Ok(_) => Ok(()),
            Err(fault) if matches!(fault.status, Some(404 | 405)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Sends a request to a model and returns its answer, of any length.
    pub(super) fn call(
        &self,
        path: &str,
        body: &[u8],
        limit: CallLimit<'_>,
    ) -> Result<HttpResponse, CallFault> {
        let request = WireRequest::json(path, body.to_vec()).largest(LARGEST);
        self.send(request, limit)
    }

    /// Sends a request and returns its answer as JSON. An answer that is cut is a fault.
    pub(super) fn json(
        &self,
        request: WireRequest<'_>,
        limit: CallLimit<'_>,
    ) -> Result<Value, CallFault> {
        parsed(&whole(self.send(request, limit)?)?.body)
    }
}

/// Returns the answer if its body is whole.
pub(super) fn whole(mut answer: HttpResponse) -> Result<HttpResponse, CallFault> {
    match answer.cut.take() {
        Some(fault) => Err(CallFault {
            request_id: answer.request_id(),
            raw: answer.body,
            ..fault
        }),
        None => Ok(answer),
    }
}

/// Parses JSON. A body that ends too early is cut, even if the connection did not report it.
pub(super) fn parsed(body: &[u8]) -> Result<Value, CallFault> {
    json::parse_bytes(body).map_err(|error| {
        let fault = if error.is_eof() {
            CallFault::new(
                FaultKind::Cut,
                format!("the answer ends too early, after {} bytes", body.len()),
            )
        } else {
            let message = format!("the answer is not JSON ({error}): {}", beginning(body));
            CallFault::new(FaultKind::Unreadable, message)
        };
        fault.with_raw(body.to_vec())
    })
}

/// The largest count that is read. Sums of a few counts do not overflow.
const LARGEST_COUNT: u64 = 1 << 53;

/// Returns a count in an answer, 0 if it is missing or no count.
pub(crate) fn count(value: &Value) -> u64 {
    tokens(value).unwrap_or(0)
}

/// Returns a number of tokens, 0 if it is missing; `None` if it is negative, a fraction, too large or no number.
pub(crate) fn tokens(value: &Value) -> Option<u64> {
    match value {
        Value::Null => Some(0),
        value => value.as_u64().filter(|&count| count <= LARGEST_COUNT),
    }
}

/// Returns a text in an answer.
pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
