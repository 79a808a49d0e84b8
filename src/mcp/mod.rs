//! A server of the Model Context Protocol, for agents. Each tool calls one function of `ops` and returns its data.

mod call;
mod http;
mod in_flight;
mod progress;
#[cfg(debug_assertions)]
mod schemas;
mod server;
mod shorten;
mod stdio;
mod tool_error;
mod tools;

use in_flight::InFlight;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{StopFlag, adopt_orphans};
use server::{ServeError, Server};
use std::sync::Arc;
use std::time::Duration;

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// One client, on standard input and output.
    Stdio,
    /// Clients on this machine, over HTTP at this port; 0 picks a free one.
    Http(u16),
}

/// Serves until the client leaves or `stop` is set, and then ends all calls. `say` gets the address once the server listens.
///
/// # Errors
/// If the server cannot start, or the client does not speak the protocol.
pub(crate) fn serve(
    request: Request,
    transport: Transport,
    stop: &Arc<StopFlag>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    adopt_orphans();
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
            Transport::Http(port) => http::serve(server, port, stopped(stop), say).await,
        }
    });
    // The clients are gone: runs in flight stop as after Ctrl-C, and leave a consistent workspace.
    calls.end();
    runtime.shutdown_timeout(Duration::ZERO);
    served
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
