//! Admits requests: by their token, their size, their time, and the requests that their client has in progress.

use super::connections::Connection;
use super::sessions::{Room, Sessions};
use super::site::Site;
use crate::mcp::clients::Client;
use crate::mcp::limits::{BODY, BODY_TIME};
use crate::mcp::server::{SESSION, Server};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use milepost_core::base::digest::Digest;
use milepost_core::expr::json;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::de::IgnoredAny;
use std::convert::Infallible;
use std::sync::Arc;

pub(crate) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// The checks of a request before the protocol reads it.
pub(super) struct Gate {
    token: Option<Digest>,
    service: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Sessions,
    site: Option<Arc<dyn Site>>,
}

impl Gate {
    pub(super) fn new(
        token: Option<Digest>,
        service: StreamableHttpService<Server, LocalSessionManager>,
        sessions: Arc<LocalSessionManager>,
        site: Option<Arc<dyn Site>>,
    ) -> Self {
        Self {
            token,
            service,
            sessions: Sessions::new(sessions),
            site,
        }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
        client: Arc<Client>,
    ) -> HttpAnswer {
        let site = self.site.as_ref();
        if let Some(site) = site.filter(|site| site.serves(request.uri().path())) {
            let answer = self.answer_page(site.as_ref(), request, connection).await;
            return answer.unwrap_or_else(Refusal::answer);
        }
        match self.admit(request, connection).await {
            Ok(Admitted {
                mut request,
                guards,
                room,
            }) => {
                request.extensions_mut().insert(client);
                let answer = self.service.handle(request).await;
                let opened = answer.headers().get(SESSION).filter(|_| room.is_some());
                if let Some(id) = opened.and_then(|id| id.to_str().ok()) {
                    self.sessions.opened(id);
                }
                drop(room);
                // The request is in progress until its answer was sent.
                answer.map(|body| {
                    let held = move |frame| {
                        std::hint::black_box(&guards);
                        frame
                    };
                    body.map_frame(held).boxed()
                })
            }
            Err(refused) => refused.answer(),
        }
    }

    /// Answers a request for a page of the site.
    async fn answer_page(
        &self,
        site: &dyn Site,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Result<HttpAnswer, Refusal> {
        let (parts, body) = request.into_parts();
        if let Err((status, why)) = site.admit(&parts) {
            return Err(refusal(status, why));
        }
        connection.admitted();
        let _in_progress = connection.begin();
        let body = read_body(body).await?;
        Ok(site.answer(Request::from_parts(parts, body)).await)
    }

    /// Reads a request completely, unless it is refused.
    async fn admit(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Result<Admitted<'_, impl Send + Sync + 'static>, Refusal> {
        if !self.is_authorized(request.headers()) {
            return Err(refusal(
                StatusCode::UNAUTHORIZED,
                "send the header `Authorization: Bearer TOKEN`; the server printed its token when it started",
            ));
        }
        connection.admitted();
        let session = request.headers().get(SESSION);
        let permit = match session.and_then(|id| id.to_str().ok()) {
            Some(id) => self.sessions.begin(id).map_err(|_| {
                refusal(
                    StatusCode::TOO_MANY_REQUESTS,
                    "this session has too many requests in progress: wait until one has ended",
                )
            })?,
            None => None,
        };
        let opens = request.method() == Method::POST && opens_session(request.headers());
        let room = if opens {
            let room = self.sessions.make_room().await;
            Some(room.ok_or_else(|| {
                refusal(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "too many sessions are open, and each has a request in progress",
                )
            })?)
        } else {
            None
        };
        let (parts, body) = request.into_parts();
        let body = read_body(body).await?;
        // A text that is not JSON is refused by the protocol.
        if let Err(error) = json::parse_bytes(&body)
            && serde_json::from_slice::<IgnoredAny>(&body).is_ok()
        {
            let why = format!("the message is invalid: {error}");
            return Err(refusal(StatusCode::BAD_REQUEST, &why));
        }
        // A client opens a broken event stream again, so its connection may be closed for another.
        let is_call = parts.method != Method::GET;
        let request = Request::from_parts(parts, Full::new(body));
        Ok(Admitted {
            request,
            guards: (permit, is_call.then(|| connection.begin())),
            room,
        })
    }

    /// Returns true if the request bears the token.
    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| {
            let (scheme, given) = value.to_str().ok()?.split_once(' ')?;
            let is_bearer = scheme.eq_ignore_ascii_case("bearer");
            is_bearer.then(|| given.trim())
        });
        given.is_some_and(|given| is_same(token, &Digest::of(given)))
    }
}

/// Reads a body, up to its limits of size and time.
async fn read_body(body: Incoming) -> Result<Bytes, Refusal> {
    let read = Limited::new(body, BODY).collect();
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the body is longer than {BODY} bytes"),
        )),
        Ok(Err(_)) => Err(refusal(StatusCode::BAD_REQUEST, "the body ended early")),
        Err(_) => {
            let why = format!("the body did not arrive within {} s", BODY_TIME.as_secs());
            Err(refusal(StatusCode::REQUEST_TIMEOUT, &why))
        }
    }
}

/// Compares in a time that does not depend on the digests.
pub(crate) fn is_same(one: &Digest, other: &Digest) -> bool {
    let (one, other) = (one.hex(), other.hex());
    let pairs = one.bytes().zip(other.bytes());
    pairs.fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// Returns true if a request may open a session: it names none.
fn opens_session(headers: &HeaderMap) -> bool {
    !headers.contains_key(SESSION)
}

/// A request that was read.
struct Admitted<'a, G> {
    request: Request<Full<Bytes>>,
    /// Counts the call as in progress.
    guards: G,
    /// Room for the session that it may open.
    room: Option<Room<'a>>,
}

/// Why a request is not admitted.
struct Refusal {
    status: StatusCode,
    why: String,
}

fn refusal(status: StatusCode, why: &str) -> Refusal {
    let why = why.to_owned();
    Refusal { status, why }
}

impl Refusal {
    fn answer(self) -> HttpAnswer {
        let body = Full::new(Bytes::from(format!("{}\n", self.why)));
        let mut answer = Response::new(body.boxed());
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        // The rest of the request is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                let bearer = HeaderValue::from_static("Bearer realm=\"milepost\"");
                headers.insert(WWW_AUTHENTICATE, bearer);
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        answer
    }
}
