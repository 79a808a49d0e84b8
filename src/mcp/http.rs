//! The server over streamable HTTP, on this machine only.

use super::server::{ServeError, Server};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;

/// The origins of pages whose scripts may call the server.
const ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// The longest wait for open connections at the end: an event stream ends only when its client closes it.
const DRAIN: Duration = Duration::from_secs(2);

/// The longest time that a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(30);

/// Serves clients of this machine until `stopped` is signalled.
///
/// # Errors
/// If it cannot listen at the port.
pub(super) async fn serve(
    server: Server,
    port: u16,
    mut stopped: Receiver<()>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |source| ServeError::Listen { port, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // A foreign page in a browser has another host or origin, and is rejected.
    let config = StreamableHttpServerConfig::default().with_allowed_origins(ORIGINS);
    let ending = config.cancellation_token.clone();
    let calls = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    say(&format!("listening at http://{address}/"));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        // The client closed the connection before it was accepted.
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(
                TokioIo::new(stream),
                TowerToHyperService::new(service.clone()),
            );
        let ended = ending.clone();
        connections.spawn(async move {
            let mut served = std::pin::pin!(served);
            tokio::select! {
                _ = served.as_mut() => return,
                () = ended.cancelled() => served.as_mut().graceful_shutdown(),
            }
            let _ = tokio::time::timeout(DRAIN, served).await;
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    calls.stop();
    ending.cancel();
    while connections.join_next().await.is_some() {}
    Ok(())
}
