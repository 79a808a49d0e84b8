//! The response to a request for a page.

use crate::page::RenderError;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use milepost_engine::ops::project::OpsError;
use std::convert::Infallible;

/// The policy of a page: its own style, script, images and requests, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The policy of a page that shows a PDF in a frame.
const FRAMES_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                             frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The policy of a PDF: a page may show it in a frame.
const PDF_POLICY: &str = "default-src 'none'; frame-ancestors 'self'";

/// The policy of a file that is opened by itself: a picture may have styles, and no script runs.
const FILE_POLICY: &str =
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; sandbox";

/// A response as the server sends it.
pub(super) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// A response with its whole body.
pub(super) struct PageResponse {
    status: StatusCode,
    content_type: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    policy: &'static str,
    body: Bytes,
}

impl PageResponse {
    /// Returns a page.
    pub(super) fn html(text: String) -> Self {
        Self::of("text/html; charset=utf-8", text)
    }

    /// Returns a part of the site: the style or the script.
    pub(super) fn asset(content_type: &'static str, text: &'static str) -> Self {
        Self::of(content_type, text)
    }

    /// Returns a file of the workspace, in which nothing runs. `name` is offered where it is saved.
    pub(super) fn file(
        content_type: &'static str,
        bytes: Vec<u8>,
        name: &str,
        is_saved: bool,
    ) -> Self {
        let mut response = Self::of(content_type, bytes);
        response.policy = match content_type {
            // The viewer of a browser does not open a PDF in a sandbox, and runs nothing of it with the rights of the page.
            "application/pdf" => PDF_POLICY,
            _ => FILE_POLICY,
        };
        let way = if is_saved { "attachment" } else { "inline" };
        let encoded: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let encoded = encoded.replace('+', "%20");
        let disposition = HeaderValue::from_str(&format!("{way}; filename*=UTF-8''{encoded}"));
        let disposition = disposition.unwrap_or(HeaderValue::from_static("attachment"));
        response.headers.push((CONTENT_DISPOSITION, disposition));
        response
    }

    /// Sends the browser to another page, after a form.
    pub(super) fn see(url: &str) -> Self {
        let mut response = Self::of("text/plain; charset=utf-8", "");
        response.status = StatusCode::SEE_OTHER;
        match HeaderValue::from_str(url) {
            Ok(url) => response.headers.push((LOCATION, url)),
            Err(_) => response.status = StatusCode::INTERNAL_SERVER_ERROR,
        }
        response
    }

    /// Changes the status.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Lets the page show files of the workspace in frames.
    pub(super) fn with_frames(self) -> Self {
        Self {
            policy: FRAMES_POLICY,
            ..self
        }
    }

    /// Lets the browser keep a cookie; its text has only ASCII characters.
    pub(super) fn with_cookie(mut self, cookie: &str) -> Self {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            self.headers.push((SET_COOKIE, cookie));
        }
        self
    }

    fn of(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            headers: Vec::new(),
            policy: POLICY,
            body: body.into(),
        }
    }

    /// Converts the response for the server.
    pub(super) fn into_answer(self) -> HttpAnswer {
        let body = Full::new(self.body).map_err(|never: Infallible| match never {});
        let mut answer = Response::new(body.boxed());
        *answer.status_mut() = self.status;
        protect(&mut answer, self.policy);
        let headers = answer.headers_mut();
        if self.policy == PDF_POLICY {
            headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.extend(self.headers);
        answer
    }
}

/// Adds headers against framing, sniffing, caching and referrers.
pub(super) fn protect(answer: &mut HttpAnswer, policy: &'static str) {
    let all = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // The URL contains the token. `no-referrer` would hide the origin of forms, which is checked.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in all {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
}

/// The policy of a stream of events, which is not a document.
pub(super) const NO_DOCUMENT: &str = "default-src 'none'";

/// Why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebError {
    #[error("there is no page `{0}`")]
    NoPage(String),
    /// A parameter is missing or wrong.
    #[error("{0}")]
    Wrong(String),
    #[error("this URL accepts only a submitted form; use the button on the page")]
    NotPosted,
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl WebError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoPage(_) => StatusCode::NOT_FOUND,
            Self::Wrong(_)
            | Self::Ops(
                OpsError::Usage(_)
                | OpsError::Outside(_)
                | OpsError::NotAccepted(_)
                | OpsError::NotApproved(_)
                | OpsError::NotAsShown(_),
            ) => StatusCode::BAD_REQUEST,
            Self::Ops(OpsError::Lock(_) | OpsError::LeasesBusy) => StatusCode::CONFLICT,
            Self::NotPosted => StatusCode::METHOD_NOT_ALLOWED,
            Self::Ops(_) | Self::Render(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
