//! The output of `codex exec --json`: events of threads, turns and items.

use super::output::{CommandOutput, failed, plain};
use crate::api::{text, tokens};
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::request::Reply;
use milepost_core::model::usage::Usage;
use serde_json::Value;

/// Returns true if a value is an event of Codex.
pub(super) fn is_event(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    ["thread.", "turn.", "item."]
        .iter()
        .any(|start| kind.starts_with(start))
}

/// Reads the last message. An item of type `error` is a warning that every run has; an `error` event may be followed by
/// another try: a turn that failed, or none that was completed, is a failure.
pub(super) fn read(values: &[Value], output: CommandOutput<'_>) -> Result<Reply, CallFault> {
    let of = |kind: &'static str| values.iter().filter(move |value| value["type"] == kind);
    let usage = of("turn.completed").map(|turn| usage_of(&turn["usage"]));
    let usage = usage.sum::<Option<Usage>>().unwrap_or_default();
    let request_id = of("thread.started").find_map(|thread| text(&thread["thread_id"]));
    let failure = of("turn.failed").next_back();
    if failure.is_some() || of("turn.completed").next().is_none() {
        let error = failure.or_else(|| of("error").next_back());
        let fault = match error {
            Some(error) => failed(output, &ErrorBody::of(error), None),
            None => CallFault::new(FaultKind::Cut, "its output ends before the turn does"),
        };
        return Err(CallFault {
            request_id,
            usage,
            ..fault
        });
    }
    let mut items = of("item.completed").map(|event| &event["item"]);
    let message = items.rfind(|item| item["type"] == "agent_message");
    match message.and_then(|message| text(&message["text"])) {
        Some(answer) => Ok(Reply {
            usage,
            request_id,
            ..plain(answer)
        }),
        None => {
            let fault = CallFault::new(FaultKind::Unreadable, "the turn ended without a message");
            Err(CallFault {
                request_id,
                usage,
                ..fault
            })
        }
    }
}

/// Input includes cached tokens, as OpenAI counts. `None` if a count is not a number.
fn usage_of(usage: &Value) -> Option<Usage> {
    Some(Usage {
        reasoning: tokens(&usage["reasoning_output_tokens"])?,
        ..Usage::of_whole_input(
            tokens(&usage["input_tokens"])?,
            tokens(&usage["cached_input_tokens"])?,
            tokens(&usage["cache_write_input_tokens"])?,
            tokens(&usage["output_tokens"])?,
        )
    })
}
