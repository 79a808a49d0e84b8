//! A server of the Model Context Protocol on standard input and output, for agents. Each tool calls one function of `ops` and returns
//! its data.

mod call;
mod in_flight;
mod limits;
mod lines;
mod plain_values;
mod progress;
#[cfg(debug_assertions)]
mod schemas;
mod server;
mod shorten;
mod slots;
mod stdio;
mod tool_error;
mod tools;

use crate::serve;
use in_flight::InFlight;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::StopFlag;
use server::Server;
use std::sync::Arc;

/// Serves one client until it leaves or `stop` is set, and then ends all its calls.
///
/// # Errors
/// If the server cannot start, or the client does not speak the protocol.
pub(crate) fn serve(request: Request, stop: &Arc<StopFlag>) -> Result<(), OpsError> {
    let calls = Arc::new(InFlight::default());
    let server = Server::new(request, Arc::clone(&calls));
    // The client is gone: runs in flight stop as after Ctrl-C, and leave a consistent workspace.
    serve::until_stopped(
        stop,
        |stopped| stdio::serve(server, stopped),
        || calls.end(),
    )
}
