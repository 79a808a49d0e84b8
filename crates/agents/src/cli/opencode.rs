//! The output of `opencode run --format json`: events with parts, and tokens and cost of each step.

use super::output::{CommandOutput, failed, plain, status_of};
use crate::api::{text, tokens as tokens_of};
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::request::{Reply, StopReason};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use serde_json::Value;

/// Returns true if a value is an event of OpenCode.
pub(super) fn is_event(value: &Value) -> bool {
    value["sessionID"].is_string() && value["type"].is_string()
}

/// Reads the text after the last use of a tool. Cost and tokens are reported per step and summed here.
pub(super) fn read(values: &[Value], output: CommandOutput<'_>) -> Result<Reply, CallFault> {
    let of = |kind: &'static str| values.iter().filter(move |value| value["type"] == kind);
    let steps = || of("step_finish").map(|step| &step["part"]);
    let usage = steps().map(|part| usage_of(&part["tokens"]));
    let usage = usage.sum::<Option<Usage>>().unwrap_or_default();
    let costs = steps()
        .map(|part| &part["cost"])
        .filter(|cost| !cost.is_null());
    let costs: Option<Vec<NanoUsd>> = costs
        .map(|cost| cost.as_f64().and_then(NanoUsd::from_dollars))
        .collect();
    let costs = costs.filter(|costs| !costs.is_empty());
    let reported_cost = costs.map(|costs| costs.into_iter().sum());
    let request_id = values.iter().find_map(|value| text(&value["sessionID"]));
    let fault = if let Some(error) = of("error").next_back() {
        let error = &error["error"];
        let told = ErrorBody {
            message: text(&error["data"]["message"]).or_else(|| text(&error["message"])),
            types: text(&error["name"]).into_iter().collect(),
            request_id: None,
        };
        Some(failed(
            output,
            &told,
            status_of(&error["data"]["statusCode"]),
        ))
    } else if !is_whole(values) {
        Some(CallFault::new(
            FaultKind::Cut,
            "its output ends before a step does",
        ))
    } else {
        None
    };
    if let Some(fault) = fault {
        return Err(CallFault {
            request_id,
            usage,
            reported_cost,
            ..fault
        });
    }
    let last_tool = values.iter().rposition(|value| value["type"] == "tool_use");
    let after = values.iter().skip(last_tool.map_or(0, |at| at + 1));
    let texts = after
        .filter(|value| value["type"] == "text")
        .filter_map(|value| value["part"]["text"].as_str());
    let stop = match steps().next_back().and_then(|part| part["reason"].as_str()) {
        Some("stop") | None => StopReason::End,
        Some("length") => StopReason::Length,
        Some("content-filter") => StopReason::Refused,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    Ok(Reply {
        stop,
        usage,
        reported_cost,
        request_id,
        ..plain(texts.collect())
    })
}

/// Returns true if the last step has ended, and did not end to use a tool: then another one would follow.
fn is_whole(values: &[Value]) -> bool {
    let mut steps = values
        .iter()
        .filter(|value| value["type"] == "step_start" || value["type"] == "step_finish");
    steps
        .next_back()
        .is_some_and(|last| last["type"] == "step_finish" && last["part"]["reason"] != "tool-calls")
}

/// Returns the usage. Input excludes cached tokens. Where the total shows it, output does not contain the reasoning. `None` if a
/// count is not a number.
fn usage_of(tokens: &Value) -> Option<Usage> {
    let (input, output, reasoning) = (
        tokens_of(&tokens["input"])?,
        tokens_of(&tokens["output"])?,
        tokens_of(&tokens["reasoning"])?,
    );
    let (cache_read, cache_write) = (
        tokens_of(&tokens["cache"]["read"])?,
        tokens_of(&tokens["cache"]["write"])?,
    );
    let without = input + output + cache_read + cache_write;
    let beside = tokens["total"]
        .as_u64()
        .is_none_or(|total| total != without);
    Some(Usage {
        input,
        cache_read,
        cache_write,
        output: if beside { output + reasoning } else { output },
        reasoning,
    })
}
