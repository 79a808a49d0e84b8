//! What could not be done, as a tool's result: words, a code for programs, and what to do about it.

use milepost_core::base::redact::redact;
use milepost_engine::ops::project::OpsError;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What could not be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(super) struct Fault {
    /// Always false.
    pub(super) success: bool,
    /// What could not be done, in a sentence.
    pub(super) error: String,
    /// The same in one word, for programs: see `docs/reference/mcp.md`.
    pub(super) code: String,
    /// What to do about it.
    pub(super) hint: String,
    /// What else is known, by the code.
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

impl Fault {
    /// A fault of which nothing else is known.
    pub(super) fn new(code: &str, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            success: false,
            error: redact(&error.into()).into_owned(),
            code: code.to_owned(),
            hint: hint.into(),
            more: Map::new(),
        }
    }

    /// With something else that is known.
    pub(super) fn with(mut self, name: &str, what: impl Serialize) -> Self {
        self.more.insert(name.to_owned(), json!(what));
        self
    }

    /// That a call was cancelled.
    pub(super) fn cancelled() -> Self {
        Self::new(
            "cancelled",
            "the call was cancelled",
            "call again: a run goes on where it stopped",
        )
    }

    /// As the result of a tool.
    pub(super) fn result(&self) -> CallToolResult {
        let value = json!(self);
        let mut result = CallToolResult::error(vec![ContentBlock::text(value.to_string())]);
        result.structured_content = Some(value);
        result
    }
}

impl From<OpsError> for Fault {
    fn from(error: OpsError) -> Self {
        let fault = Self::new(error.kind(), error.to_string(), error.hint());
        match &error {
            OpsError::Declarations(problems) => fault.with("problems", problems.to_json()),
            _ => fault,
        }
    }
}
