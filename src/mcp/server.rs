//! The server as clients see it: its description, its tools, and their calls.

use super::call::Call;
use super::in_flight::InFlight;
use super::progress::progress_channel;
use super::slots::Slots;
use super::tool_error::ToolError;
use super::tools::{self, ToolCall, ToolEntry, WaitStatus};
use milepost_core::base::visible::visible_lines;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::StopFlag;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::Arc;

/// The description of the server for models.
const INSTRUCTIONS: &str = "\
Milepost runs the declared stages of this project over the files of its workspace, and writes a checkpoint for each complete stage. \
`status` shows the state of each stage, `plan` shows what a run would do and why, and `run` does it. Before you start a stage, call \
`check_stage_completion` for the stage before it: complete means verified now. Results contain counts and file references; read the \
files, never rebuild their content from memory. If `success` is false, `error`, `code` and `hint` describe the problem and the fix.";

/// The server. Clones share its state.
#[derive(Clone)]
pub(super) struct Server {
    request: Arc<Request>,
    calls: Arc<InFlight>,
    slots: Arc<Slots>,
}

impl Server {
    pub(super) fn new(mut request: Request, calls: Arc<InFlight>) -> Self {
        request.confined = true;
        Self {
            request: Arc::new(request),
            calls,
            slots: Arc::new(Slots::new()),
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

/// Makes a call. Only its steps that may block get a thread, so a call that waits for a file holds none.
async fn answer(tool: &'static ToolEntry, call: Call) -> Result<Value, ToolError> {
    match tool.call {
        ToolCall::Once(function) => blocking(move || function(&call)).await,
        ToolCall::Wait(begin) => {
            let (mut wait, mut call) = blocking(move || Ok((begin(&call)?, call))).await?;
            loop {
                let status;
                (status, wait, call) =
                    blocking(move || Ok((wait.check(&call)?, wait, call))).await?;
                match status {
                    WaitStatus::Done(value) => return Ok(value),
                    WaitStatus::Again(pause) => tokio::time::sleep(pause).await,
                }
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError::defect()))
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
        Ok(ListToolsResult::with_all_items(tools::LISTED.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::listed(name)
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
        let name = context.client_info();
        let name = name.map_or_else(|| "client".to_owned(), |client| client.name);
        let slot = match self.slots.begin(matches!(tool.call, ToolCall::Wait(_))) {
            Ok(slot) => slot,
            Err(too_many) => return Ok(too_many.result().into()),
        };
        let (progress, updates) = progress_channel(context.meta.get_progress_token());
        let sending = updates.map(|updates| tokio::spawn(updates.send(context.peer.clone())));
        let entry = self.calls.begin();
        let stop_on_drop = StopOnDrop(Arc::clone(&entry.stop));
        let call = Call {
            request: Arc::clone(&self.request),
            tool: tool.name,
            schema: tools::listed(tool.name).map_or_else(Arc::default, |tool| tool.input_schema),
            client: name,
            arguments: request.arguments.unwrap_or_default(),
            progress,
            entry,
            _slot: slot,
        };
        let mut working = tokio::spawn(answer(tool, call));
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
                let text = visible_lines(&value.to_string()).into_owned();
                let mut result = CallToolResult::structured(value);
                result.content = vec![ContentBlock::text(text)];
                result.is_error = Some(false);
                result
            }
            Ok(Err(tool_error)) => tool_error.result(),
            Err(error) if error.is_panic() => ToolError::defect().result(),
            // The server is ending.
            Err(_) => ToolError::cancelled().result(),
        };
        Ok(result.into())
    }
}
