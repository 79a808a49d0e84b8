//! The server of `milepost ui`: pages for a browser.
//!
//! A page is a function from the [`Site`] and a [`PageRequest`] to a [`PageResponse`], listed in [`routes::respond`]. It runs on a thread
//! of its own, so it may read the disk. All paths are below `/ui/TOKEN/`; the token is made when the server starts.

mod actions;
mod calls;
mod elements;
mod files;
mod http;
mod overview;
mod request;
mod response;
mod review;
mod routes;
mod runs;
mod site;
mod stages;
mod tables;
mod timeline;

use crate::serve;
use http::listener;
use milepost_engine::ops::browser_file::BrowserFile;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::StopFlag;
use site::Site;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

/// The options of the server of the pages.
pub(crate) struct UiOptions {
    /// The address and port; port 0 picks a free one.
    pub(crate) address: SocketAddr,
    /// True if the browser is opened.
    pub(crate) opens_browser: bool,
}

/// A message for the person who started the server.
pub(crate) enum ServerNotice {
    /// The URL of the pages. It contains their token.
    Address(String),
    Warning(&'static str),
}

/// Serves the pages until `stop` is set. A run that was started on the page is stopped then, as by Ctrl-C.
///
/// # Errors
/// If there is no project, or the server cannot start.
pub(crate) fn serve(
    request: Request,
    options: &UiOptions,
    stop: &Arc<StopFlag>,
    say: &(dyn Fn(ServerNotice) + Sync),
) -> Result<(), OpsError> {
    let site = Site::new(request)?;
    if !options.address.ip().is_loopback() {
        say(ServerNotice::Warning(
            "other machines can reach the page: whoever has its URL can read the workspace and start runs, and the connection is not encrypted",
        ));
    }
    let opened: RefCell<Option<BrowserFile>> = RefCell::default();
    let listening = || {
        let url = site.first_url();
        if options.opens_browser {
            // Without a browser, the printed URL can be opened by hand.
            let html = site.opening(&url).ok();
            let file = html.and_then(|html| BrowserFile::write(&site.request, &html).ok());
            if let Some(file) = file {
                let _ = open::that_detached(file.path());
                *opened.borrow_mut() = Some(file);
            }
        }
        say(ServerNotice::Address(url));
    };
    let server = |stopped| listener::serve(site.clone(), options.address, stopped, listening);
    serve::until_stopped(stop, server, || site.runs.end())
}
