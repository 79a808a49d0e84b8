//! The pages by their paths.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::review::{approvals, items};
use super::site::Site;
use super::{actions, calls, elements, files, overview, stages, timeline};
use crate::page;
use hyper::Method;

/// Answers a request for a page.
///
/// # Errors
/// If there is no such page, or it cannot be made.
pub(super) fn respond(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let posted = request.method == Method::POST;
    match (request.path.as_str(), posted) {
        ("", false) => overview::overview(site),
        ("style.css", false) => Ok(PageResponse::asset("text/css; charset=utf-8", page::STYLE)),
        ("live.js", false) => Ok(PageResponse::asset(
            "text/javascript; charset=utf-8",
            page::SCRIPT,
        )),
        ("review.css", false) => Ok(PageResponse::asset(
            "text/css; charset=utf-8",
            page::REVIEW_STYLE,
        )),
        ("review.js", false) => Ok(PageResponse::asset(
            "text/javascript; charset=utf-8",
            page::REVIEW_SCRIPT,
        )),
        ("icon.svg", false) => Ok(PageResponse::asset("image/svg+xml", page::ICON)),
        ("plan", false) => actions::plan(site, request),
        ("elements", false) => elements::elements(site, request),
        ("stages", false) => stages::list::stages(site),
        ("stage", false) => stages::stage::stage(site, request),
        ("batch", false) => stages::batch::batch(site, request),
        ("approve", true) => stages::approve::approve(site, request),
        ("accept", true) => stages::batch::accept(site, request),
        ("calls", false) => calls::calls(site, request),
        ("call", false) => calls::call(site, request),
        ("file", false) => files::file(site, request),
        ("raw", false) => files::raw(site, request),
        ("why", false) => stages::why::why(site, request),
        ("review", false) => items::review(site, request),
        ("review", true) => items::decide(site, request),
        ("approvals", false) => approvals::approvals(site, request),
        ("timeline", false) => timeline::timeline(site, request),
        ("run", true) => actions::run(site, request),
        ("stop", true) => actions::stop(site),
        ("run" | "stop" | "accept" | "approve", false) => Err(WebError::NotPosted),
        (path, _) => Err(WebError::NoPage(path.to_owned())),
    }
}
