//! Pages for a browser beside the protocol, on the same port.

use super::gate::HttpAnswer;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use std::net::SocketAddr;
use std::pin::Pin;

/// The answer to a request, once it is made.
pub(crate) type SiteAnswer<'a> = Pin<Box<dyn Future<Output = HttpAnswer> + Send + 'a>>;

/// Pages that the server has beside the protocol.
pub(crate) trait Site: Send + Sync {
    /// Notes the address once the server listens, and returns the URL to open.
    fn begin(&self, address: SocketAddr) -> String;

    /// Returns true if a path is one of the site; all others are the protocol's.
    fn serves(&self, path: &str) -> bool;

    /// Checks a request before its body is read.
    ///
    /// # Errors
    /// The status and the reason, if it is refused.
    fn admit(&self, parts: &Parts) -> Result<(), (StatusCode, &'static str)>;

    /// Answers an admitted request.
    fn answer(&self, request: Request<Bytes>) -> SiteAnswer<'_>;

    /// Ends all open streams, because the server stops.
    fn end(&self);
}
