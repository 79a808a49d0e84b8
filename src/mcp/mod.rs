//! The face for agents: a server of the Model Context Protocol. Each tool calls one function of `ops` and gives back its data.

mod call;
mod cut;
mod fault;
mod http;
mod progress;
#[cfg(debug_assertions)]
mod schemas;
mod server;
mod stdio;
mod tools;
mod under_way;

use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{StopFlag, adopt_orphans};
use server::Server;
use std::sync::Arc;
use std::time::Duration;
use under_way::UnderWay;

/// What the server works on.
#[derive(Clone)]
pub(crate) struct Desk {
    /// Project, workspace and values.
    pub(crate) request: Request,
}

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// One client, on standard input and output.
    Stdio,
    /// Clients on this machine, by HTTP at this port; 0: one that is free.
    Http(u16),
}

/// Why the server could not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The system gives it no threads.
    #[error("the server cannot begin: {0}")]
    Begin(#[source] std::io::Error),
    /// The port is taken.
    #[error(
        "cannot listen at port {port} of this machine: {source}; take another by `--http PORT`"
    )]
    Listen {
        /// The port.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
    /// The client does not speak the protocol.
    #[error("the client on standard input does not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

/// Serves until the client is gone or `stop` is set, and until every call has ended. `say` is told where the server listens.
///
/// # Errors
/// When it cannot begin.
pub(crate) fn serve(
    desk: Desk,
    reach: Reach,
    stop: &Arc<StopFlag>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    adopt_orphans();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Begin)?;
    let calls = Arc::new(UnderWay::default());
    let server = Server::new(desk, Arc::clone(&calls));
    let served = runtime.block_on(async {
        match reach {
            Reach::Stdio => stdio::serve(server, stopped(stop)).await,
            Reach::Http(port) => http::serve(server, port, stopped(stop), say).await,
        }
    });
    // Whoever asked is gone: what still runs is ended as by Ctrl-C, and what it left is in order.
    calls.end();
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// Comes when the flag is set.
fn stopped(stop: &Arc<StopFlag>) -> tokio::sync::oneshot::Receiver<()> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let stop = Arc::clone(stop);
    let waiting = move || {
        while !stop.is_set() {
            stop.pause(Duration::from_hours(1));
        }
        // Nobody listens any more when the server has ended.
        let _ = sender.send(());
    };
    // Without the thread nothing comes: the receiver of a dropped sender is taken for that.
    let _ = std::thread::Builder::new()
        .name("stop".to_owned())
        .spawn(waiting);
    receiver
}
