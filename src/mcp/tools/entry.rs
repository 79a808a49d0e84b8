//! A tool of the MCP server: its description, its schemas, and the function that answers its calls.

use super::orchestration::SubagentWait;
use crate::mcp::call::Call;
use crate::mcp::tool_error::ToolError;
use rmcp::model::{Tool, ToolAnnotations};
#[cfg(debug_assertions)]
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The JSON Schemas of the arguments of a tool and of its result.
type Schemas = (Map<String, Value>, Map<String, Value>);

pub(in crate::mcp) struct ToolEntry {
    pub(in crate::mcp) name: &'static str,
    /// The name for people.
    pub(super) title: &'static str,
    /// The description for models.
    pub(super) about: &'static str,
    /// True if the tool writes nothing.
    pub(super) reads: bool,
    /// Returns the schemas of arguments and result.
    pub(super) schemas: fn(tool: &str) -> Schemas,
    pub(in crate::mcp) call: ToolCall,
}

/// How a tool answers a call.
pub(in crate::mcp) enum ToolCall {
    /// By one function, which may block its thread.
    Once(fn(&Call) -> Result<Value, ToolError>),
    /// By a wait, which holds no thread between its looks.
    Wait(fn(&Call) -> Result<SubagentWait, ToolError>),
}

impl ToolEntry {
    /// Returns the tool as clients list it.
    pub(super) fn tool(&self) -> Tool {
        let (arguments, result) = (self.schemas)(self.name);
        let annotations = ToolAnnotations::from_raw(
            None,
            Some(self.reads),
            (!self.reads).then_some(false),
            Some(true),
            Some(!self.reads),
        );
        Tool::new(self.name, self.about, arguments)
            .with_title(self.title)
            .with_raw_output_schema(result.into())
            .with_annotations(annotations)
    }
}

/// Derives the schemas from the types.
#[cfg(debug_assertions)]
pub(super) fn schemas_of<A: JsonSchema, R: JsonSchema>(_: &str) -> Schemas {
    use crate::mcp::schemas;
    (schemas::arguments::<A>(), schemas::result::<R>())
}

/// Returns the committed schemas. A test compares them with the types.
#[cfg(not(debug_assertions))]
pub(super) fn schemas_of<A, R>(tool: &str) -> Schemas {
    static TOOLS: std::sync::LazyLock<Vec<Value>> = std::sync::LazyLock::new(|| {
        serde_json::from_str(include_str!("../tools.json")).unwrap_or_default()
    });
    let tool = TOOLS.iter().find(|committed| committed["name"] == tool);
    let schema = |key: &str| {
        let schema = tool.and_then(|committed| committed[key].as_object());
        schema.cloned().unwrap_or_default()
    };
    (schema("inputSchema"), schema("outputSchema"))
}
