//! The pages as the HTTP server sees them.

use super::admission::{PREFIX, admit, after_token};
use super::events;
use crate::mcp::{HttpAnswer, Site as Pages, SiteAnswer};
use crate::web::request::PageRequest;
use crate::web::response::WebError;
use crate::web::routes;
use crate::web::site::Site;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::{Request as HttpRequest, StatusCode};
use std::net::{Ipv4Addr, SocketAddr};

/// Serves the pages of a site.
pub(in crate::web) struct SiteServer(pub(in crate::web) Site);

impl Pages for SiteServer {
    fn begin(&self, address: SocketAddr) -> String {
        let _ = self.0.address.set(address);
        let host = match address.ip() {
            ip if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
            _ => address,
        };
        format!("http://{host}{}/", self.0.root())
    }

    fn serves(&self, path: &str) -> bool {
        path.starts_with(PREFIX)
    }

    fn admit(&self, parts: &Parts) -> Result<(), (StatusCode, &'static str)> {
        admit(parts, &self.0.digest, self.0.address())
    }

    fn answer(&self, request: HttpRequest<Bytes>) -> SiteAnswer<'_> {
        Box::pin(respond(self.0.clone(), request))
    }

    fn end(&self) {
        self.0.runs.begin_end();
        self.0.ended.send_replace(true);
    }
}

/// Answers a request on a thread of its own, so that it may read the disk.
async fn respond(site: Site, request: HttpRequest<Bytes>) -> HttpAnswer {
    let (parts, body) = request.into_parts();
    let path = after_token(parts.uri.path(), &site.digest).unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    let request = PageRequest::new(parts.method, path, query, parts.headers, &body);
    if request.path == "events" {
        return events::stream(&site, &request);
    }
    let of_page = site.clone();
    let made = tokio::task::spawn_blocking(move || {
        let response = routes::respond(&of_page, &request);
        response.unwrap_or_else(|error| of_page.error(&error, &request.entered()))
    });
    let response = made.await.unwrap_or_else(|_| {
        let text = "this is a bug in Milepost, please report it".to_owned();
        site.error(&WebError::Wrong(text), &[])
            .with_status(StatusCode::INTERNAL_SERVER_ERROR)
    });
    response.into_answer()
}
