//! The server as clients see it: its description, its tools, and their calls.

use super::call::Call;
use super::in_flight::InFlight;
use super::progress::progress_channel;
use super::tool_error::ToolError;
use super::tools::{self, ToolEntry};
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::StopFlag;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use std::sync::Arc;

/// The description of the server for models.
const INSTRUCTIONS: &str = "\
Milepost runs the declared stages of this project over the files of its workspace, and writes a checkpoint for each complete stage. \
`status` shows the state of each stage, `plan` shows what a run would do and why, and `run` does it. Before you start a stage, call \
`check_stage_completion` for the stage before it: complete means verified now. Results contain counts and file references; read the \
files, never rebuild their content from memory. If `success` is false, `error`, `code` and `hint` say what went wrong and what to do.";

/// Why the server stopped serving.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("cannot start the server: {0}")]
    Begin(#[source] std::io::Error),
    #[error(
        "cannot listen at port {port} of this machine: {source}; choose another one with `--http PORT`"
    )]
    Listen { port: u16, source: std::io::Error },
    #[error("the client on standard input does not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

/// The server. It is cheap to clone: sessions share its state.
#[derive(Clone)]
pub(super) struct Server {
    request: Arc<Request>,
    calls: Arc<InFlight>,
}

impl Server {
    pub(super) fn new(mut request: Request, calls: Arc<InFlight>) -> Self {
        request.confined = true;
        Self {
            request: Arc::new(request),
            calls,
        }
    }

    /// Cancels all calls.
    pub(super) fn stop(&self) {
        self.calls.stop();
    }
}

/// Cancels a call when the client no longer waits for it.
struct StopOnDrop(Arc<StopFlag>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        info.server_info =
            Implementation::new("milepost", &self.request.version).with_title("Milepost");
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            tools::TOOLS.iter().map(ToolEntry::tool).collect(),
        ))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::tool(name).map(ToolEntry::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::tool(&request.name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool `{}`", request.name),
                None,
            ));
        };
        let (progress, updates) = progress_channel(context.meta.get_progress_token());
        let sending = updates.map(|updates| tokio::spawn(updates.send(context.peer.clone())));
        let entry = self.calls.begin();
        let stop_on_drop = StopOnDrop(Arc::clone(&entry.stop));
        let server_request = Arc::clone(&self.request);
        let arguments = request.arguments.unwrap_or_default();
        let client = context.client_info();
        let client = client.map_or_else(|| "client".to_owned(), |client| client.name);
        // A run blocks its thread, so it gets one of its own.
        let mut working = tokio::task::spawn_blocking(move || {
            let call = Call {
                request: &server_request,
                tool: tool.name,
                client,
                arguments,
                progress: &progress,
                stop: &entry.stop,
            };
            (tool.call)(&call)
        });
        let done = tokio::select! {
            done = &mut working => done,
            () = context.ct.cancelled() => {
                stop_on_drop.0.set();
                working.await
            }
        };
        if let Some(sending) = sending {
            // Progress arrives before the result.
            let _ = sending.await;
        }
        let result = match done {
            Ok(Ok(value)) => {
                let mut result = CallToolResult::structured(value);
                result.is_error = Some(false);
                result
            }
            Ok(Err(tool_error)) => tool_error.result(),
            Err(_) => ToolError::new(
                "defect",
                "Milepost stopped unexpectedly in this call",
                "this is a bug in Milepost, please report it; the workspace is consistent, and the next run continues",
            )
            .result(),
        };
        Ok(result.into())
    }
}
