//! The server: its connections, and the requests that it admits.

use super::admission::admit;
use super::connections::{Connection, Connections};
use super::limits::{BODY, BODY_TIME, DRAIN, HEAD, HEAD_TIME, HEADERS};
use super::pages::respond;
use crate::web::response::HttpAnswer;
use crate::web::site::Site;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use milepost_engine::ops::project::OpsError;
use rustix::io::Errno;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot::Receiver;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Serves browsers until `stopped` is signalled. `listening` is called once the site has its address.
///
/// # Errors
/// If it cannot listen at the address.
pub(in crate::web) async fn serve(
    site: Site,
    address: SocketAddr,
    mut stopped: Receiver<()>,
    listening: impl FnOnce(),
) -> Result<(), OpsError> {
    let failed = |error| {
        OpsError::World(format!(
            "cannot listen at {address}: {error}; choose another port, or 0 for a free one"
        ))
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let _ = site.address.set(address);
    let ending = watch::Sender::new(false);
    let open = Connections::new();
    listening();
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
        let site = site.clone();
        let answer = service_fn(move |request| {
            let (site, connection) = (site.clone(), connection.clone());
            async move { Ok::<_, Infallible>(answer(site, request, &connection).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD)
            .max_headers(HEADERS)
            .serve_connection(TokioIo::new(stream), answer);
        let mut ended = ending.subscribe();
        connections.spawn(async move {
            let mut served = std::pin::pin!(served);
            tokio::select! {
                _ = served.as_mut() => return,
                _ = closed => return,
                _ = ended.wait_for(|ended| *ended) => served.as_mut().graceful_shutdown(),
            }
            let _ = tokio::time::timeout(DRAIN, served).await;
        });
    }
    drop(listener);
    site.runs.begin_end();
    site.ended.send_replace(true);
    ending.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Answers a request, if it is admitted.
async fn answer(site: Site, request: Request<Incoming>, connection: &Connection) -> HttpAnswer {
    let (parts, body) = request.into_parts();
    if let Err((status, why)) = admit(&parts, &site.digest, site.address()) {
        return refusal(status, why);
    }
    connection.admitted();
    match read_body(body).await {
        Ok(body) => {
            let _in_progress = connection.begin();
            respond(site, Request::from_parts(parts, body)).await
        }
        Err((status, why)) => refusal(status, &why),
    }
}

/// Reads a body, up to its limits of size and time.
async fn read_body(body: Incoming) -> Result<Bytes, (StatusCode, String)> {
    let read = Limited::new(body, BODY).collect();
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is longer than {BODY} bytes"),
        )),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body ended early".to_owned())),
        Err(_) => {
            let why = format!("the body did not arrive within {} s", BODY_TIME.as_secs());
            Err((StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

/// Returns the answer to a request that is not admitted. Its body is not read, so the connection is closed.
fn refusal(status: StatusCode, why: &str) -> HttpAnswer {
    let body = Full::new(Bytes::from(format!("{why}\n")));
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = status;
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(CONNECTION, close);
    answer
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
