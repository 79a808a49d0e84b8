//! The HTTP client. It sends and returns exact bytes, and ends a call at a deadline or a cancellation.

mod waits;

use super::fault::{CallFault, FaultKind, beginning};
use milepost_core::base::redact::Redactor;
pub use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Returns true if the call must end. It is called at least every 25 ms.
pub type Cancelled<'a> = &'a (dyn Fn() -> bool + Sync);

/// When a call must end.
#[derive(Clone, Copy)]
pub struct CallLimit<'a> {
    /// The time limit for request and response.
    pub within: Duration,
    pub cancelled: Cancelled<'a>,
}

/// How often a call looks whether it was cancelled.
const TICK: Duration = Duration::from_millis(25);

/// How long a connection may take to be made, if the deadline is not nearer.
const CONNECT: Duration = Duration::from_secs(30);

/// The largest response that is read, in bytes.
pub const LARGEST: usize = 64 << 20;

/// An HTTP client that threads can share. A thread of its own drives the connections.
#[derive(Debug)]
pub struct Http {
    client: reqwest::Client,
    // None only while it is dropped.
    runtime: Option<Runtime>,
}

/// An HTTP client that could not be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The URL of the proxy is not valid.
    #[error("the proxy `{proxy}` is not a usable URL: {why}")]
    Proxy {
        /// The URL as declared.
        proxy: String,
        why: String,
    },
    /// The system refused a thread, or its certificate authorities could not be read.
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
}

/// The HTTP client of a run. The first request creates it, and all requests share it.
#[derive(Debug, Default)]
pub struct SharedHttp(OnceLock<Result<Arc<Http>, HttpError>>);

impl SharedHttp {
    /// Returns the client.
    ///
    /// # Errors
    /// Fails if the client cannot be created; the error is the same each time.
    pub fn get(&self) -> Result<Arc<Http>, HttpError> {
        let made = self.0.get_or_init(|| Http::new(None).map(Arc::new));
        made.clone()
    }
}

#[derive(Debug)]
pub struct HttpRequest<'a> {
    pub url: &'a str,
    /// The headers. Those named in [`SENSITIVE`] are never shown.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; `None` for a GET request.
    pub body: Option<Vec<u8>>,
    /// The time limit for request and response.
    pub within: Duration,
    /// The largest response that is read, in bytes.
    pub largest: usize,
}

/// Headers that carry keys.
const SENSITIVE: [&str; 2] = ["authorization", "x-api-key"];

/// A response of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    /// The headers, with lower-case names.
    pub(crate) headers: Vec<(String, String)>,
    /// The part of the body that arrived.
    pub body: Vec<u8>,
    /// The reason why the body is incomplete, if it is.
    pub cut: Option<CallFault>,
}

impl HttpResponse {
    /// Returns an answer with a good status and this body.
    pub(crate) fn of_success(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            body,
            ..Self::default()
        }
    }

    /// Removes known keys from headers and body.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor) -> Self {
        for (_, value) in &mut self.headers {
            if let Cow::Owned(hidden) = redactor.known_text(value) {
                *value = hidden;
            }
        }
        if let Cow::Owned(hidden) = redactor.known_bytes(&self.body) {
            self.body = hidden;
        }
        self
    }

    /// Returns the header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }

    /// Returns the provider's id of the request.
    pub(crate) fn request_id(&self) -> Option<String> {
        let id = self
            .header("request-id")
            .or_else(|| self.header("x-request-id"));
        id.map(str::to_owned)
    }
}

impl Http {
    /// Creates a client. Proxies named in the environment are not used.
    ///
    /// # Errors
    /// Fails if the URL of the proxy is not valid, or the system refuses a thread.
    pub fn new(proxy: Option<&str>) -> Result<Self, HttpError> {
        // An error says that a provider is there already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = match proxy {
            None => None,
            Some(url) => Some(reqwest::Proxy::all(url).map_err(|error| HttpError::Proxy {
                proxy: url.to_owned(),
                why: causes(&error),
            })?),
        };
        // A compressed answer is not inflated.
        let identity = HeaderValue::from_static("identity");
        let build = |trusted: bool| {
            let mut builder = reqwest::Client::builder()
                .user_agent(concat!("milepost/", env!("CARGO_PKG_VERSION")))
                // A redirect would take the key elsewhere.
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .default_headers([(ACCEPT_ENCODING, identity.clone())].into_iter().collect())
                .connect_timeout(CONNECT);
            if let Some(proxy) = &proxy {
                builder = builder.proxy(proxy.clone());
            }
            if !trusted {
                builder = builder.tls_certs_only([]);
            }
            builder.build()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("milepost-http")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| HttpError::Client(error.to_string()))?;
        // Without trusted authorities, servers without TLS still work; a TLS connection fails with the reason.
        let client = build(true).or_else(|_| build(false));
        let client = client.map_err(|error| HttpError::Client(causes(&error)))?;
        Ok(Self {
            client,
            runtime: Some(runtime),
        })
    }

    /// Sends a GET request, or a POST request if there is a body, and reads the whole response, with any status. If the body breaks
    /// off, [`HttpResponse::cut`] has the reason.
    ///
    /// # Errors
    /// Fails with `Connect`, `Timeout`, `Cut` or `Cancelled` if there is no response, and with `BadRequest` if the URL or a header
    /// is malformed.
    pub fn send(
        &self,
        send: HttpRequest<'_>,
        cancelled: Cancelled<'_>,
    ) -> Result<HttpResponse, CallFault> {
        let method = match send.body {
            Some(_) => Method::POST,
            None => Method::GET,
        };
        self.call(&method, send, cancelled)
    }

    /// Sends a request with any method.
    ///
    /// # Errors
    /// Fails as [`Http::send`] does.
    pub fn call(
        &self,
        method: &Method,
        send: HttpRequest<'_>,
        cancelled: Cancelled<'_>,
    ) -> Result<HttpResponse, CallFault> {
        let request = self.request(method, &send)?;
        let Some(runtime) = &self.runtime else {
            return Err(CallFault::new(FaultKind::Connect, "the client is closed"));
        };
        if cancelled() {
            return Err(CallFault::new(
                FaultKind::Cancelled,
                "cancelled before it was sent",
            ));
        }
        let mut answer = None;
        let ended = runtime.block_on(bounded(
            exchange(&self.client, request, send.largest, &mut answer),
            send.within,
            cancelled,
        ));
        match (ended, answer) {
            (Ok(()), Some(answer)) => Ok(answer),
            // The body broke off.
            (Err(fault), Some(mut answer)) => {
                answer.cut = Some(fault);
                Ok(answer)
            }
            (Err(fault), None) => Err(fault),
            (Ok(()), None) => Err(CallFault::new(
                FaultKind::Unreadable,
                "there was no response",
            )),
        }
    }

    fn request(
        &self,
        method: &Method,
        send: &HttpRequest<'_>,
    ) -> Result<reqwest::Request, CallFault> {
        let bad = |message: String| CallFault::new(FaultKind::BadRequest, message);
        let mut request = self.client.request(method.clone(), send.url);
        if let Some(body) = &send.body {
            request = request.body(body.clone());
        }
        for (name, text) in send.headers {
            let sensitive = SENSITIVE.contains(name);
            let mut value = HeaderValue::from_str(text).map_err(|_| {
                let what = if sensitive { "the key" } else { name };
                let message =
                    format!("{what} contains a character that is not allowed in a header");
                CallFault::new(
                    if sensitive {
                        FaultKind::Auth
                    } else {
                        FaultKind::BadRequest
                    },
                    message,
                )
            })?;
            value.set_sensitive(sensitive);
            let name = HeaderName::try_from(*name).map_err(|error| bad(error.to_string()))?;
            request = request.header(name, value);
        }
        request
            .build()
            .map_err(|error| bad(format!("{}: {}", shown(send.url), causes(&bare(error)))))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // A name that is still being looked up would hold up the end of the program.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Sends, and keeps what has arrived where it outlives the future that is dropped at a deadline.
async fn exchange(
    client: &reqwest::Client,
    request: reqwest::Request,
    largest: usize,
    kept: &mut Option<HttpResponse>,
) -> Result<(), CallFault> {
    let mut response = client.execute(request).await.map_err(fault_of)?;
    let headers = response.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let answer = kept.insert(HttpResponse {
        status: response.status().as_u16(),
        headers: headers.collect(),
        ..HttpResponse::default()
    });
    while let Some(chunk) = response.chunk().await.map_err(fault_of)? {
        if answer.body.len() + chunk.len() > largest {
            let message = format!("the answer is larger than {largest} bytes");
            return Err(CallFault::new(FaultKind::Unreadable, message));
        }
        answer.body.extend_from_slice(&chunk);
    }
    Ok(())
}

/// Drives a future to its end, to the deadline, or until the call is cancelled.
async fn bounded(
    work: impl Future<Output = Result<(), CallFault>>,
    within: Duration,
    cancelled: Cancelled<'_>,
) -> Result<(), CallFault> {
    let mut work = pin!(work);
    let watched = async {
        loop {
            if let Ok(ended) = tokio::time::timeout(TICK, &mut work).await {
                return ended;
            }
            if cancelled() {
                return Err(CallFault::new(
                    FaultKind::Cancelled,
                    "cancelled before the response arrived",
                ));
            }
        }
    };
    tokio::time::timeout(within, watched)
        .await
        .unwrap_or_else(|_| {
            let message = format!("no complete response within {within:?}");
            Err(CallFault::new(FaultKind::Timeout, message))
        })
}

/// Returns scheme, host and port of a URL as a request reaches them, such as `https://api.example.com`. A host alone is one with
/// `https`.
pub fn origin(url: &str) -> Option<String> {
    let of = |url: &str| {
        let origin = reqwest::Url::parse(url).ok()?.origin();
        origin.is_tuple().then(|| origin.ascii_serialization())
    };
    let is_host = !url.contains("://");
    of(url).or_else(|| is_host.then(|| of(&format!("https://{url}")))?)
}

/// Returns a URL without user, password, query and fragment, any of which may be a key.
pub fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let host = rest.split('/').next().unwrap_or_default();
    let rest = host.rfind('@').map_or(rest, |at| &rest[at + 1..]);
    format!("{scheme}://{rest}")
}

/// Returns the error with its address as it may be shown.
fn bare(mut error: reqwest::Error) -> reqwest::Error {
    if let Some(url) = error.url_mut() {
        url.set_query(None);
        url.set_fragment(None);
        // Only an address without a host refuses.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    error
}

fn fault_of(error: reqwest::Error) -> CallFault {
    let error = &bare(error);
    let kind = if error.is_connect() {
        FaultKind::Connect
    } else if error.is_timeout() {
        FaultKind::Timeout
    } else if error.is_builder() {
        FaultKind::BadRequest
    } else {
        FaultKind::Cut
    };
    let what = match kind {
        FaultKind::Connect => "could not connect",
        FaultKind::Timeout => "timed out",
        FaultKind::BadRequest => "cannot be sent",
        _ => "the connection was lost",
    };
    CallFault::new(kind, format!("{what}: {}", causes(error)))
}

/// An error with its causes: reqwest says the reason last.
fn causes(error: &dyn std::error::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let part = error.to_string();
        if !parts.iter().any(|said| said.contains(&part)) {
            parts.push(part);
        }
        next = error.source();
    }
    beginning(parts.join(": ").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_client() {
        let shared = SharedHttp::default();
        assert!(Arc::ptr_eq(&shared.get().unwrap(), &shared.get().unwrap()));
    }

    #[test]
    fn what_may_be_a_key_is_not_shown() {
        for (url, expected) in [
            (
                "http://localhost:3001/a/b?key=1#x",
                "http://localhost:3001/a/b",
            ),
            ("https://me:secret@host/a@b", "https://host/a@b"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn an_origin_is_what_a_request_reaches() {
        for (url, expected) in [
            ("api.example.com", "https://api.example.com"),
            ("https://API.example.com:443/a", "https://api.example.com"),
            ("http://localhost:3001", "http://localhost:3001"),
            (
                "https://api.example.com@evil.example/",
                "https://evil.example",
            ),
            (
                "https://evil.example\\@api.example.com/",
                "https://evil.example",
            ),
            ("http:/\\/evil.example", "http://evil.example"),
            (
                "https://api.example.com.evil.example",
                "https://api.example.com.evil.example",
            ),
        ] {
            assert_eq!(origin(url).as_deref(), Some(expected), "{url}");
        }
        assert_eq!(origin("https://["), None);
    }
}
