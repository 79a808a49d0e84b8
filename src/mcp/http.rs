//! The server over streamable HTTP.

mod connections;
mod gate;
mod sessions;
mod site;
mod stall;

pub(crate) use gate::{HttpAnswer, is_same};
pub(crate) use site::{Site, SiteAnswer};

use super::limits::{ANSWER_TIME, DRAIN, HEAD, HEAD_TIME, HEADERS, SESSION_TIME, STALL_TIME};
use super::server::{ServeError, Server};
use connections::Connections;
use gate::Gate;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use milepost_core::base::digest::Digest;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rustix::io::Errno;
use stall::StallLimit;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;

/// The origins of pages whose scripts may call the server.
const ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// Serves clients until `stopped` is signalled. `listening` gets the address once the server listens. A request of the protocol must
/// bear the token of this digest; `None` admits every request. A site decides itself which requests it admits.
///
/// # Errors
/// If it cannot listen at the address.
pub(super) async fn serve(
    server: Server,
    address: SocketAddr,
    token: Option<Digest>,
    site: Option<Arc<dyn Site>>,
    mut stopped: Receiver<()>,
    listening: &(dyn Fn(SocketAddr) + Sync),
) -> Result<(), ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // A foreign page in a browser has another host or origin, and is rejected.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(ORIGINS)
        .with_max_request_body_bytes(super::limits::BODY);
    let ending = config.cancellation_token.clone();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_TIME);
    sessions.session_config.completed_cache_ttl = ANSWER_TIME;
    let sessions = Arc::new(sessions);
    let calls = server.clone();
    let for_session = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(for_session.for_client()),
        Arc::clone(&sessions),
        config,
    );
    let gate = Arc::new(Gate::new(token, service, sessions, site.clone()));
    let open = Connections::new();
    listening(address);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The client left before its connection was accepted.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                if is_shortage(&error) {
                    open.close_idle();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let Some((connection, closed)) = open.admit() else {
            continue;
        };
        let (gate, client) = (Arc::clone(&gate), server.for_client().client());
        let answer = service_fn(move |request| {
            let (gate, connection, client) =
                (Arc::clone(&gate), connection.clone(), Arc::clone(&client));
            async move { Ok::<_, Infallible>(gate.answer(request, &connection, client).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD)
            .max_headers(HEADERS)
            .serve_connection(TokioIo::new(StallLimit::new(stream, STALL_TIME)), answer);
        let ended = ending.clone();
        connections.spawn(async move {
            let mut served = std::pin::pin!(served);
            tokio::select! {
                _ = served.as_mut() => return,
                _ = closed => return,
                () = ended.cancelled() => served.as_mut().graceful_shutdown(),
            }
            let _ = tokio::time::timeout(DRAIN, served).await;
        });
    }
    drop(listener);
    if let Some(site) = site {
        site.end();
    }
    calls.stop();
    ending.cancel();
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Returns true if the system has no room for another connection: a closed one makes some.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| shortages.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shortage_closes_connections_of_others() {
        let is_shortage = |error: Errno| is_shortage(&error.into());
        for error in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(is_shortage(error), "{error}");
        }
        for error in [Errno::CONNABORTED, Errno::CONNRESET, Errno::NETDOWN] {
            assert!(!is_shortage(error), "{error}");
        }
    }
}
