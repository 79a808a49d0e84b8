//! The output of Claude Code and Cursor: an object of type `result`, alone or as the last line of a stream.

use super::output::{CommandExit, CommandOutput, failed, plain, status_of};
use crate::api::{count, text, tokens};
use crate::api::{stop_of, usage_of};
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::request::{Reply, StopReason};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use serde_json::Value;

/// Returns true if a value is the result. The order of its keys differs from version to version, and so do most of them.
pub(super) fn is_result(value: &Value) -> bool {
    value["type"] == "result" && value["is_error"].is_boolean()
}

/// Returns true if a value is an event of a stream that ends with the result.
pub(super) fn is_event(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let is_part = matches!(kind, "system" | "assistant" | "user" | "stream_event");
    is_result(value) || (is_part && value["session_id"].is_string())
}

/// Reads the result. `subtype` says "success" of failures too: it only names them.
pub(super) fn read(values: &[Value], output: CommandOutput<'_>) -> Result<Reply, CallFault> {
    let Some(result) = values.iter().rev().find(|value| is_result(value)) else {
        let fault = CallFault::new(FaultKind::Cut, "its output ends before the result");
        return Err(match output.ended {
            CommandExit::Code(0) => fault,
            _ => failed(output, &ErrorBody::default(), None),
        });
    };
    let usage = usage(result).unwrap_or_default();
    let reported_cost = result["total_cost_usd"]
        .as_f64()
        .and_then(NanoUsd::from_dollars);
    let answer = result["result"].as_str();
    let structured = Some(&result["structured_output"])
        .filter(|value| !value.is_null())
        .cloned();
    if result["is_error"] == true || (answer.is_none() && structured.is_none()) {
        let errors = result["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let errors: Vec<&str> = errors.collect();
        let names = [&result["api_error_type"], &result["subtype"]];
        let told = ErrorBody {
            message: answer
                .map(str::to_owned)
                .or_else(|| (!errors.is_empty()).then(|| errors.join("; "))),
            types: names
                .into_iter()
                .filter_map(text)
                .filter(|name| name != "success")
                .collect(),
            request_id: None,
        };
        let fault = failed(output, &told, status_of(&result["api_error_status"]));
        return Err(CallFault {
            request_id: id(result),
            usage,
            reported_cost,
            ..fault
        });
    }
    let stop = match result["stop_reason"].as_str() {
        // A structured answer is given by a tool of its own.
        None => StopReason::End,
        Some("tool_use") if structured.is_some() => StopReason::End,
        Some(reason) => stop_of(reason),
    };
    Ok(Reply {
        structured,
        stop,
        usage,
        reported_cost,
        served_model: served(result),
        request_id: id(result),
        ..plain(answer.unwrap_or_default().to_owned())
    })
}

fn id(result: &Value) -> Option<String> {
    text(&result["request_id"]).or_else(|| text(&result["session_id"]))
}

/// Tokens by model include those of helper models; without them, the main count is used. `None` if a count is not a number.
fn usage(result: &Value) -> Option<Usage> {
    let models = result["modelUsage"].as_object().into_iter().flatten();
    let of_model = |model: &Value| {
        Some(Usage {
            input: tokens(&model["inputTokens"])?,
            cache_read: tokens(&model["cacheReadInputTokens"])?,
            cache_write: tokens(&model["cacheCreationInputTokens"])?,
            output: tokens(&model["outputTokens"])?,
            reasoning: tokens(&model["thinkingTokens"])?,
        })
    };
    let by_model: Usage = models
        .map(|(_, model)| of_model(model))
        .sum::<Option<Usage>>()?;
    if by_model.total() > 0 {
        Some(by_model)
    } else {
        usage_of(&result["usage"])
    }
}

/// Returns the model that wrote most.
fn served(result: &Value) -> Option<String> {
    let models = result["modelUsage"].as_object()?.iter();
    let most = models.max_by_key(|(_, model)| count(&model["outputTokens"]))?;
    Some(most.0.clone())
}
