//! The server on standard input and output: a message a line.

use super::lines::Lines;
use super::server::Server;
use milepost_engine::ops::project::OpsError;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::sync::oneshot::Receiver;

/// Serves one client until it closes standard input, or until `stopped` is signalled.
///
/// # Errors
/// If standard output cannot be written.
pub(super) async fn serve(server: Server, stopped: Receiver<()>) -> Result<(), OpsError> {
    let lines = Lines::new(server.clone());
    let serving = async {
        loop {
            match server.clone().serve(lines.clone()).await {
                Ok(client) => {
                    // The client is gone, however the session ended.
                    let _ = client.waiting().await;
                    return Ok(());
                }
                // A client may leave before its first message.
                Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
                // A client may still initialize after a message that may not come first.
                Err(
                    ServerInitializeError::ExpectedInitializeRequest(_)
                    | ServerInitializeError::InitializeFailed(_),
                ) => {}
                Err(error) => {
                    return Err(OpsError::World(format!(
                        "the client on standard input does not speak the Model Context Protocol: {error}"
                    )));
                }
            }
        }
    };
    tokio::select! {
        served = serving => served,
        _ = stopped => Ok(()),
    }
}
