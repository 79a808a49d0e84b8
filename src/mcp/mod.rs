//! A server of the Model Context Protocol, for agents. Each tool calls one function of `ops` and returns its data.

mod call;
mod clients;
mod http;
mod in_flight;
mod limits;
mod lines;
mod plain_values;
mod progress;
#[cfg(debug_assertions)]
mod schemas;
mod server;
mod shorten;
mod stdio;
mod tool_error;
mod tools;

use in_flight::InFlight;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{StopFlag, adopt_orphans};
use milepost_engine::ops::token::{AccessToken, token};
use serde_json::json;
pub(crate) use server::ServeError;
use server::Server;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use http::{HttpAnswer, Site, SiteAnswer, is_same};
pub(crate) use limits::STALL_TIME;

/// How clients reach the server.
pub(crate) enum Transport {
    /// One client, on standard input and output.
    Stdio,
    /// Clients over HTTP.
    Http {
        /// The address and port; port 0 picks a free one.
        address: SocketAddr,
        /// True if requests need no token.
        no_token: bool,
        /// Pages for a browser on the same port.
        site: Option<Arc<dyn Site>>,
    },
}

/// Reports to the person who started the server.
pub(crate) enum ServerNotice {
    /// The address, or what a client needs to know to call it: this may contain the token.
    Started(String),
    /// The URL of the pages. It contains their token.
    Address(String),
    Warning(&'static str),
}

/// Serves until the client leaves or `stop` is set, and then ends all calls. `say` gets the notices once the server listens.
///
/// # Errors
/// If the server cannot start, or the client does not speak the protocol.
pub(crate) fn serve(
    request: Request,
    transport: Transport,
    stop: &Arc<StopFlag>,
    say: &(dyn Fn(ServerNotice) + Sync),
) -> Result<(), ServeError> {
    adopt_orphans();
    let token = match transport {
        Transport::Http {
            no_token: false, ..
        } => Some(token(&request)?),
        _ => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Begin)?;
    let calls = Arc::new(InFlight::default());
    let server = Server::new(request, Arc::clone(&calls));
    let served = runtime.block_on(async {
        match transport {
            Transport::Stdio => stdio::serve(server, stopped(stop)).await,
            Transport::Http { address, site, .. } => {
                let digest = token.as_ref().map(|token| Digest::of(&token.text));
                let of_page = site.clone();
                let listening = |address: SocketAddr| match &of_page {
                    Some(site) => say(ServerNotice::Address(site.begin(address))),
                    None => listening(&format!("http://{address}/"), token.as_ref(), say),
                };
                http::serve(server, address, digest, site, stopped(stop), &listening).await
            }
        }
    });
    // The clients are gone: runs in flight stop as after Ctrl-C, and leave a consistent workspace.
    calls.end();
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// Reports the address, and the configuration of a client with the token.
fn listening(url: &str, token: Option<&AccessToken>, say: &(dyn Fn(ServerNotice) + Sync)) {
    let started = |text: String| say(ServerNotice::Started(text));
    started(format!("listening at {url}"));
    let Some(AccessToken { text, file }) = token else {
        say(ServerNotice::Warning(
            "every user and every program of this machine may call the server: it asks for no token",
        ));
        return;
    };
    let header = json!({"Authorization": format!("Bearer {text}")});
    let server = json!({"type": "http", "url": url, "headers": header});
    let configuration = json!({"mcpServers": {"milepost": server}});
    started(format!("client configuration: {configuration}"));
    if let Some(file) = file {
        started(format!("the token is kept in {}", file.display()));
    }
}

/// Returns a channel that is signalled when the flag is set.
fn stopped(stop: &Arc<StopFlag>) -> tokio::sync::oneshot::Receiver<()> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let stop = Arc::clone(stop);
    let waiting = move || {
        while !stop.is_set() {
            stop.pause(Duration::from_hours(1));
        }
        // The receiver is gone if the server has ended.
        let _ = sender.send(());
    };
    // Without the thread, the sender is dropped, which the receiver takes for a signal.
    let _ = std::thread::Builder::new()
        .name("stop".to_owned())
        .spawn(waiting);
    receiver
}
