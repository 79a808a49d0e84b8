//! Answers requests for pages.

use super::admission::after_token;
use super::events;
use crate::web::request::PageRequest;
use crate::web::response::{HttpAnswer, WebError};
use crate::web::routes;
use crate::web::site::Site;
use hyper::body::Bytes;
use hyper::{Request, StatusCode};

/// Answers an admitted request on a thread of its own, so that it may read the disk.
pub(super) async fn respond(site: Site, request: Request<Bytes>) -> HttpAnswer {
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
