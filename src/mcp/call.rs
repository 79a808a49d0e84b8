//! One call of a tool: its arguments, its progress, and its result.

use super::in_flight::InFlightCall;
use super::plain_values::convert;
use super::progress::ProgressSender;
use super::shorten::shorten_result;
use super::slots::Slot;
use super::tool_error::ToolError;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::StopFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One call of a tool.
pub(super) struct Call {
    /// The server's project, workspace and values.
    pub(super) request: Arc<Request>,
    /// The name of the tool.
    pub(super) tool: &'static str,
    /// The name that the client gave itself.
    pub(super) client: String,
    /// The published schema of the arguments.
    pub(super) schema: Arc<Map<String, Value>>,
    /// The arguments as the client sent them.
    pub(super) arguments: Map<String, Value>,
    pub(super) progress: ProgressSender,
    /// In flight while this exists. Its flag is set when the client cancels the call.
    pub(super) entry: InFlightCall,
    /// Counts the call among those of its client.
    pub(super) _slot: Slot,
}

impl Call {
    /// Returns the flag that is set when the client cancels the call.
    pub(super) fn stop(&self) -> &StopFlag {
        &self.entry.stop
    }

    /// Parses the arguments.
    ///
    /// # Errors
    /// If an argument is missing, unknown or of the wrong type.
    pub(super) fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let arguments = convert(self.arguments.clone(), &self.schema);
        let arguments = Value::Object(arguments);
        serde_json::from_value(arguments).map_err(|error| {
            ToolError::new(
                "arguments",
                format!("the arguments of `{}` are invalid: {error}", self.tool),
                "send arguments that match the `inputSchema` of the tool",
            )
        })
    }

    /// Returns the server's request with this call as its command. `words` follow the name of the tool in journal and lock.
    pub(super) fn request_as(&self, words: &str) -> Request {
        let blank = if words.is_empty() { "" } else { " " };
        let request = Request::clone(&self.request);
        let command = format!("{} ({}{blank}{words})", request.command, self.tool);
        Request { command, ..request }
    }
}

/// Returns the result of a successful call, shortened; `whole` says where the complete data is.
///
/// # Errors
/// If the data cannot be written as JSON.
pub(super) fn done(data: &impl Serialize, whole: &str) -> Result<Value, ToolError> {
    answer(true, data, whole)
}

/// Returns a result, shortened; `success` is true if the call succeeded.
///
/// # Errors
/// If the data cannot be written as JSON.
pub(super) fn answer(
    success: bool,
    data: &impl Serialize,
    whole: &str,
) -> Result<Value, ToolError> {
    let broken = |why: String| {
        ToolError::new(
            "defect",
            format!("the result cannot be written: {why}"),
            "this is a bug in Milepost, please report it",
        )
    };
    let mut fields = Map::new();
    fields.insert("success".to_owned(), success.into());
    match serde_json::to_value(data) {
        Ok(Value::Object(data)) => fields.extend(data),
        Ok(other) => return Err(broken(format!("it is {other}"))),
        Err(error) => return Err(broken(error.to_string())),
    }
    Ok(Value::Object(shorten_result(fields, whole)))
}
