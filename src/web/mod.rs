//! The server of `milepost ui`: pages for a browser, beside the MCP server on the same port.
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

use crate::mcp::{self, ServeError, ServerNotice, Transport};
use http::server::SiteServer;
use milepost_engine::ops::browser_file::BrowserFile;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::StopFlag;
use site::Site;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The options of the server of the pages.
pub(crate) struct UiOptions {
    /// The address and port; port 0 picks a free one.
    pub(crate) address: SocketAddr,
    /// True if the browser is opened.
    pub(crate) opens_browser: bool,
}

/// Serves the pages and the MCP server until `stop` is set. A run that was started on the page is stopped then, as by Ctrl-C.
///
/// # Errors
/// If there is no project, or the server cannot start.
pub(crate) fn serve(
    request: Request,
    options: &UiOptions,
    stop: &Arc<StopFlag>,
    say: &(dyn Fn(ServerNotice) + Sync),
) -> Result<(), ServeError> {
    let site = Site::new(request.clone())?;
    if !options.address.ip().is_loopback() {
        say(ServerNotice::Warning(
            "other machines can reach the page: whoever has its URL can read the workspace and start runs, and the connection is not encrypted",
        ));
    }
    let opens_browser = options.opens_browser;
    let opened: Mutex<Option<BrowserFile>> = Mutex::default();
    let open_browser = |url: &str| {
        // Without a browser, the printed URL can be opened by hand.
        let html = site.opening(url).ok();
        let file = html.and_then(|html| BrowserFile::write(&site.request, &html).ok());
        if let Some(file) = file {
            let _ = open::that_detached(file.path());
            *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        }
    };
    let transport = Transport::Http {
        address: options.address,
        no_token: false,
        site: Some(Arc::new(SiteServer(site.clone()))),
    };
    let say_all = |notice: ServerNotice| {
        if let ServerNotice::Address(url) = &notice
            && opens_browser
        {
            open_browser(url);
        }
        say(notice);
    };
    let served = mcp::serve(request, transport, stop, &say_all);
    site.runs.end();
    served
}
