//! The pages of one workspace, and what they share.

use super::http::admission::PREFIX;
use super::response::{PageResponse, WebError};
use super::runs::Runs;
use crate::page::{RenderError, Templates, value};
use milepost_core::base::digest::Digest;
use milepost_engine::ops::inspect::live::Live;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::token::random_token;
use minijinja::{Value, context};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// The pages of one workspace.
#[derive(Clone)]
pub(super) struct Site(Arc<SiteState>);

/// The state that all requests share.
pub(super) struct SiteState {
    /// The project, workspace and values that the server was started with.
    pub(super) request: Request,
    /// The state of the workspace, kept between requests.
    pub(super) live: Live,
    /// The run that was started on a page.
    pub(super) runs: Runs,
    templates: Templates,
    token: String,
    /// The digest of the token.
    pub(super) digest: Digest,
    pub(super) address: OnceLock<SocketAddr>,
    /// Becomes true when the server ends, which ends all streams.
    pub(super) ended: watch::Sender<bool>,
}

impl std::ops::Deref for Site {
    type Target = SiteState;

    fn deref(&self) -> &SiteState {
        &self.0
    }
}

impl Site {
    /// Creates the pages of the workspace of a request.
    ///
    /// # Errors
    /// If there is no project, its declarations are wrong, or the system has no random numbers.
    pub(super) fn new(request: Request) -> Result<Self, OpsError> {
        let live = Live::open(&request)?;
        let token = random_token()?;
        let templates = Templates::new();
        Ok(Self(Arc::new(SiteState {
            digest: Digest::of(&token),
            token,
            live,
            runs: Runs::default(),
            templates: templates.map_err(|error| {
                OpsError::World(format!(
                    "the pages cannot be rendered: {error}; this is a bug in Milepost, please report it"
                ))
            })?,
            address: OnceLock::new(),
            ended: watch::Sender::new(false),
            request,
        })))
    }

    /// Renders a page: `data` beside what every page shows. `at` is the entry of the navigation that is marked.
    pub(super) fn page(
        &self,
        template: &str,
        at: &str,
        title: &str,
        data: Value,
    ) -> Result<PageResponse, RenderError> {
        let project = self.live.project();
        let shared = context! {
            root => self.root(),
            at,
            title,
            project => project.name,
            workspace => project.workspace,
            run => value(self.runs.state()),
            as_of => value(self.live.as_of()),
            problems => value(self.live.problems()),
            data,
        };
        self.templates
            .render(template, shared)
            .map(PageResponse::html)
    }

    /// Returns the start of the path of every page, without a slash at its end.
    pub(super) fn root(&self) -> String {
        format!("{PREFIX}{}", self.token)
    }

    /// Returns the URL of a page with its parameters.
    pub(super) fn url(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        let mark = if parameters.is_empty() { "" } else { "?" };
        format!("{}/{path}{mark}{}", self.root(), query.finish())
    }

    /// Returns the URL of the first page, once the server listens.
    pub(super) fn first_url(&self) -> String {
        let address = self.address();
        let host = match address.ip() {
            ip if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
            _ => address,
        };
        format!("http://{host}{}/", self.root())
    }

    /// Renders the file that leads a browser to a URL of the pages.
    pub(super) fn opening(&self, url: &str) -> Result<String, RenderError> {
        self.templates.render("open.html", context! { url })
    }

    /// Returns the address that the server listens at.
    pub(super) fn address(&self) -> SocketAddr {
        let nothing = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        self.address.get().copied().unwrap_or(nothing)
    }

    /// Answers with a page that says what is wrong, and repeats what a person entered.
    pub(super) fn error(&self, error: &WebError, entered: &[(String, String)]) -> PageResponse {
        let title = error.status().canonical_reason().unwrap_or("Error");
        let data = context! { message => error.to_string(), entered => value(entered) };
        let page = self.page("error.html", "", title, data);
        let page = page.unwrap_or_else(|error| PageResponse::html(error.to_string()));
        page.with_status(error.status())
    }
}
