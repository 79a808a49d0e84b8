//! The server on standard input and output.

use super::server::{ServeError, Server};
use rmcp::ServiceExt as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::oneshot::Receiver;

/// Serves one client until it closes standard input, or until `stopped` is signalled.
///
/// # Errors
/// If the client does not speak the protocol.
pub(super) async fn serve(server: Server, stopped: Receiver<()>) -> Result<(), ServeError> {
    let (stdin, stdout) = rmcp::transport::stdio();
    let calls = server.clone();
    let input = Input { stdin, calls };
    let serving = async {
        let client = match server.serve((input, stdout)).await {
            Ok(client) => client,
            // A client may leave before its first message.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Protocol(error.to_string())),
        };
        // The client is gone, however the session ended.
        let _ = client.waiting().await;
        Ok(())
    };
    tokio::select! {
        served = serving => served,
        _ = stopped => Ok(()),
    }
}

/// Standard input. Its end cancels the calls in flight.
struct Input {
    stdin: Stdin,
    calls: Server,
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stdin).poll_read(context, buffer);
        let is_over = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_over {
            self.calls.stop();
        }
        read
    }
}
