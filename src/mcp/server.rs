//! The server as the protocol sees it: who it is, its tools, and their calls.

use super::Desk;
use super::call::Call;
use super::fault::Fault;
use super::progress::telling;
use super::tools::{self, Row};
use super::under_way::UnderWay;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use std::sync::Arc;

/// What a model is told about the server.
const INSTRUCTIONS: &str = "\
Milepost runs the declared stages of this project over the files of its workspace, and keeps a checkpoint for each stage that is \
complete. `status` says how far each stage is, `plan` what a run would do and why, `run` does it. Before a stage, ask \
`check_stage_completion` for the one before: complete means verified now. Results are counts and file references; read the files, \
never rebuild their content from memory. A result with `success` false says in `error`, `code` and `hint` what to do.";

/// The server. Cheap to clone: sessions share what it works on.
#[derive(Clone)]
pub(super) struct Server {
    desk: Arc<Desk>,
    calls: Arc<UnderWay>,
}

impl Server {
    pub(super) fn new(mut desk: Desk, calls: Arc<UnderWay>) -> Self {
        desk.request.confined = true;
        Self {
            desk: Arc::new(desk),
            calls,
        }
    }

    /// Asks all calls to stop.
    pub(super) fn stop(&self) {
        self.calls.stop();
    }
}

/// Asks a call to stop when nobody waits for it any more.
struct Hurry(Arc<milepost_engine::ops::run::StopFlag>);

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        info.server_info =
            Implementation::new("milepost", &self.desk.request.version).with_title("Milepost");
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            tools::ROWS.iter().map(Row::tool).collect(),
        ))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::row(name).map(Row::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(row) = tools::row(&request.name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool `{}`", request.name),
                None,
            ));
        };
        let (teller, steps) = telling(context.meta.get_progress_token());
        let telling = steps.map(|steps| tokio::spawn(steps.send(context.peer.clone())));
        let entry = self.calls.begin();
        let hurry = Hurry(Arc::clone(&entry.stop));
        let desk = Arc::clone(&self.desk);
        let arguments = request.arguments.unwrap_or_default();
        let client = context.client_info();
        let client = client.map_or_else(|| "client".to_owned(), |client| client.name);
        // Stages are run by plain threads that wait: not by those that serve.
        let mut working = tokio::task::spawn_blocking(move || {
            let call = Call {
                desk: &desk,
                tool: row.name,
                client,
                arguments,
                teller: &teller,
                stop: &entry.stop,
            };
            (row.call)(&call)
        });
        let done = tokio::select! {
            done = &mut working => done,
            () = context.ct.cancelled() => {
                hurry.0.set();
                working.await
            }
        };
        if let Some(telling) = telling {
            // What is told of a call comes before its result.
            let _ = telling.await;
        }
        let result = match done {
            Ok(Ok(value)) => {
                let mut result = CallToolResult::structured(value);
                result.is_error = Some(false);
                result
            }
            Ok(Err(fault)) => fault.result(),
            Err(_) => Fault::new(
                "defect",
                "Milepost broke down in this call",
                "this is a defect of Milepost: please report it; the workspace is whole, and a run goes on where it stopped",
            )
            .result(),
        };
        Ok(result.into())
    }
}
