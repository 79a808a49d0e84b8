//! The name of the person who reviews, kept by the browser from form to form.

use crate::web::http::admission::PREFIX;
use crate::web::request::PageRequest;
use crate::web::response::PageResponse;
use crate::web::site::Site;
use hyper::header::COOKIE;

/// The cookie with the name.
const NAME: &str = "milepost_reviewer";

/// How long the browser keeps it: a year, in seconds.
const KEPT: u32 = 31_536_000;

/// Returns the name that was given last, or the user of this process.
pub(in crate::web) fn reviewer(site: &Site, request: &PageRequest) -> String {
    let cookies = request.header(COOKIE).unwrap_or_default();
    let pairs = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    let mut kept = pairs.filter(|(name, _)| *name == NAME);
    let kept = kept.next().map(|(_, value)| decoded(value));
    let user = site.request.environment.get("USER").cloned();
    kept.filter(|name| !name.is_empty())
        .or(user)
        .unwrap_or_default()
}

/// Lets the browser keep a name.
pub(in crate::web) fn remember(response: PageResponse, who: &str) -> PageResponse {
    let value: String = form_urlencoded::byte_serialize(who.as_bytes()).collect();
    // The token in the path changes with each start of the server; the name stays.
    response.with_cookie(&format!(
        "{NAME}={value}; Path={PREFIX}; Max-Age={KEPT}; SameSite=Strict; HttpOnly"
    ))
}

fn decoded(value: &str) -> String {
    let pairs = format!("n={value}");
    let mut pairs = form_urlencoded::parse(pairs.as_bytes());
    pairs
        .next()
        .map(|(_, name)| name.into_owned())
        .unwrap_or_default()
}
