//! Errors of tools: a message, a code for programs, and a hint.

use milepost_core::base::redact::redact;
use milepost_core::base::visible::visible_lines;
use milepost_engine::ops::project::OpsError;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// An error of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(super) struct ToolError {
    /// Always false.
    pub(super) success: bool,
    /// The problem.
    pub(super) error: String,
    /// Code for programs, listed in `docs/reference/mcp.md`.
    pub(super) code: String,
    /// The remedy.
    pub(super) hint: String,
    /// Further fields, which depend on the code.
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

impl ToolError {
    /// Creates an error without further fields. Keys are removed from the message.
    pub(super) fn new(code: &str, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            success: false,
            error: visible_lines(&redact(&error.into())).into_owned(),
            code: code.to_owned(),
            hint: visible_lines(&hint.into()).into_owned(),
            more: Map::new(),
        }
    }

    /// Adds a field.
    pub(super) fn with(mut self, name: &str, what: impl Serialize) -> Self {
        self.more.insert(name.to_owned(), json!(what));
        self
    }

    /// Returns the error of a cancelled call.
    pub(super) fn cancelled() -> Self {
        Self::new(
            "cancelled",
            "the call was cancelled",
            "call again: a run continues where it stopped",
        )
    }

    /// Returns the error of a call that panicked.
    pub(super) fn defect() -> Self {
        Self::new(
            "defect",
            "Milepost stopped unexpectedly in this call",
            "this is a bug in Milepost, please report it; the workspace is consistent, and the next run continues",
        )
    }

    /// Returns the error as the result of a tool.
    pub(super) fn result(&self) -> CallToolResult {
        let value = json!(self);
        let mut result =
            CallToolResult::error(vec![ContentBlock::text(visible_lines(&value.to_string()))]);
        result.structured_content = Some(value);
        result
    }
}

impl From<OpsError> for ToolError {
    fn from(error: OpsError) -> Self {
        let converted = Self::new(error.kind(), error.to_string(), error.hint());
        match &error {
            OpsError::Declarations(problems) => converted.with("problems", problems.to_json()),
            _ => converted,
        }
    }
}
