//! The output of `gemini --output-format json` and `stream-json`: the response and statistics by model.

use super::output::{CommandOutput, failed, plain, status_of};
use crate::api::{count, text, tokens as tokens_of};
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::request::Reply;
use milepost_core::model::usage::Usage;
use serde_json::Value;

/// Returns true if a value is of Gemini: the one object, or the first or last event of a stream.
pub(super) fn is_event(value: &Value) -> bool {
    let whole = value["session_id"].is_string()
        && (value["stats"].is_object() || value["error"].is_object());
    whole
        || (value["type"] == "result" && value["stats"].is_object())
        || (value["type"] == "init" && value["session_id"].is_string())
}

/// Reads the response. An error with its status is in `error`; most often it comes on standard error instead.
pub(super) fn read(values: &[Value], output: CommandOutput<'_>) -> Result<Reply, CallFault> {
    let request_id = values.iter().find_map(|value| text(&value["session_id"]));
    let stats = values
        .iter()
        .rev()
        .map(|value| &value["stats"])
        .find(|stats| stats.is_object());
    let stats = stats.unwrap_or(&Value::Null);
    let usage = usage_of(stats).unwrap_or_default();
    let error = values
        .iter()
        .rev()
        .find(|value| value["error"].is_object() || value["status"] == "error");
    if let Some(error) = error {
        let fault = failed(
            output,
            &ErrorBody::of(error),
            status_of(&error["error"]["code"]),
        );
        return Err(CallFault {
            request_id,
            usage,
            ..fault
        });
    }
    let whole = values.iter().find_map(|value| text(&value["response"]));
    let ended = whole.is_some() || values.iter().any(|value| value["type"] == "result");
    if !ended {
        let fault = CallFault::new(FaultKind::Cut, "its output ends before the result");
        return Err(CallFault {
            request_id,
            usage,
            ..fault
        });
    }
    let messages = values
        .iter()
        .filter(|value| value["type"] == "message" && value["role"] != "user");
    let streamed = || {
        messages
            .filter_map(|value| value["content"].as_str())
            .collect()
    };
    Ok(Reply {
        usage,
        request_id,
        served_model: served(stats),
        ..plain(whole.unwrap_or_else(streamed))
    })
}

/// Sums the tokens of all models. The prompt includes cached tokens; thoughts and tool output are counted separately. `None` if a
/// count is not a number.
fn usage_of(stats: &Value) -> Option<Usage> {
    let models = stats["models"].as_object().into_iter().flatten();
    let of_model = |tokens: &Value| {
        let input = tokens_of(&tokens["prompt"])? + tokens_of(&tokens["tool"])?;
        let reasoning = tokens_of(&tokens["thoughts"])?;
        let output = tokens_of(&tokens["candidates"])? + reasoning;
        let usage = Usage::of_whole_input(input, tokens_of(&tokens["cached"])?, 0, output);
        Some(Usage { reasoning, ..usage })
    };
    models.map(|(_, model)| of_model(&model["tokens"])).sum()
}

/// Returns the model that wrote most.
fn served(stats: &Value) -> Option<String> {
    let models = stats["models"].as_object()?.iter();
    let most = models.max_by_key(|(_, model)| count(&model["tokens"]["candidates"]))?;
    Some(most.0.clone())
}
