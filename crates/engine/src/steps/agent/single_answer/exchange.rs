//! The requests for one answer: sends the prompt, and repeats it with the violations until the answer is valid.

use super::form::{read, refuse, violations};
use crate::steps::agent::call::Caller;
use crate::steps::agent::call_context::{CallContext, CallError};
use crate::steps::agent::handle::{AgentHandle, Backend};
use crate::steps::agent::request_parts::RequestParts;
use crate::steps::agent::task::AgentTask;
use crate::steps::batch_context::StepEvent;
use crate::steps::calls::ValidAnswer;
use milepost_agents::request::{AgentRequest, Reply};
use milepost_core::base::digest::Digest;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::AnswersOf;
use milepost_core::model::step::AnswerForm;
use milepost_core::model::usage::Usage;
use milepost_store::check::schema::Schema;
use serde_json::{Value, json};

/// The answer to a prompt.
pub(crate) struct SingleAnswer {
    pub(crate) answer: Value,
    pub(crate) warnings: Vec<String>,
    /// The sums `input_tokens`, `output_tokens` and `cost_usd` of its requests; null if unknown.
    pub(crate) usage: Value,
    /// The call of the answer; `None` if no call was needed.
    pub(crate) from: Option<AnswersOf>,
}

/// A request, and the address of its answer.
pub(super) struct PreparedRequest {
    pub(super) request: AgentRequest,
    pub(super) address: Digest,
}

/// Tokens and cost of the requests for an answer.
pub(crate) struct RequestUsage {
    /// `None` if a command line or server did not report them.
    tokens: Option<Usage>,
    cost: Option<NanoUsd>,
}

impl RequestUsage {
    pub(crate) const NOTHING: Self = Self {
        tokens: Some(Usage::NONE),
        cost: Some(NanoUsd::ZERO),
    };

    fn add(&mut self, handle: &AgentHandle, reply: &Reply) {
        // No request uses no tokens: the tool or the server reported none.
        let is_silent = matches!(handle.backend, Backend::Tool(_) | Backend::Api(_))
            && reply.usage.total() == 0;
        let tokens = self.tokens.filter(|_| !is_silent);
        self.tokens = tokens.map(|sum| sum + reply.usage);
        let batched = handle.agent.is_batched();
        let cost = handle
            .costs
            .of_call(handle.model(), batched, &reply.usage, reply.reported_cost);
        self.cost = self.cost.zip(cost).map(|(sum, one)| sum + one);
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "input_tokens": self.tokens.map(|tokens| tokens.total_input()),
            "output_tokens": self.tokens.map(|tokens| tokens.output),
            "cost_usd": self.cost.map(NanoUsd::dollars),
        })
    }
}

/// Sends a request until its answer is valid, and keeps the answer. `place` ends the names of its files.
///
/// # Errors
/// When there is no valid answer after all attempts.
pub(super) fn exchange(
    ctx: &CallContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    schema: Option<&Schema>,
    prepared: &PreparedRequest,
    place: &str,
) -> Result<SingleAnswer, Outcome> {
    let mut caller = Caller {
        handle,
        step: task.out,
        timeout: task.timeout,
        attempts: task.attempts,
        count: 0,
        place: place.to_owned(),
    };
    let mut feedback: Vec<String> = Vec::new();
    let mut kind = OutcomeKind::Schema;
    let mut used = RequestUsage::NOTHING;
    for _ in 0..task.attempts.max(1) {
        let mut again = prepared.request.clone();
        if !feedback.is_empty() {
            again
                .prompt
                .push_str("\n\nYour last answer was not valid:\n");
            for line in &feedback {
                again.prompt.push_str(&format!("- {line}\n"));
            }
            again.prompt.push_str("Answer once more.\n");
        }
        ctx.calls.about_to_ask(&|| RequestParts {
            out: task.out.to_owned(),
            questions: Vec::new(),
            address: Some(prepared.address),
            keeps_id: true,
            request: again.clone(),
        });
        let (call, reply) = caller.call(ctx, &again, 1).map_err(|unanswered| {
            let (CallError::TooLong(outcome) | CallError::Failed(outcome)) = unanswered;
            outcome
        })?;
        used.add(handle, &reply);
        let refused = |violations: &[String]| {
            ctx.observer.event(StepEvent::Refused {
                number: call,
                valid: 0,
                violations,
            });
        };
        if let Err(outcome) = refuse(handle, &reply) {
            refused(std::slice::from_ref(&outcome.message));
            caller.mark_used(ctx.calls, call)?;
            return Err(outcome);
        }
        let structured = reply.structured.as_ref();
        let (form, has_schema) = (task.answer, schema.is_some());
        match read(&reply.text, structured, form, task.defaults, has_schema) {
            Ok((answer, warnings)) => {
                feedback = violations(schema, &answer);
                kind = OutcomeKind::Schema;
                if feedback.is_empty() {
                    ctx.calls.keep(vec![ValidAnswer {
                        address: prepared.address,
                        answer: kept(&reply, &answer, &warnings, &used),
                        schema: task.schema.map(|asset| asset.digest),
                        agent: handle.agent.describe(),
                        call,
                        is_shared: false,
                    }])?;
                    caller.mark_used(ctx.calls, call)?;
                    return Ok(SingleAnswer {
                        answer,
                        warnings,
                        usage: used.to_json(),
                        from: Some(AnswersOf::one(ctx.calls.run(), call)),
                    });
                }
            }
            Err(why) => (feedback, kind) = (vec![why], OutcomeKind::Parse),
        }
        refused(&feedback);
        caller.mark_used(ctx.calls, call)?;
    }
    Err(invalid(handle, task.attempts, kind, feedback))
}

/// Returns the outcome of a batch without a valid answer. `kind` tells what was wrong with the last one.
pub(super) fn invalid(
    handle: &AgentHandle,
    attempts: u32,
    kind: OutcomeKind,
    wrong: Vec<String>,
) -> Outcome {
    let requests = match attempts {
        1 => "one request".to_owned(),
        many => format!("{many} requests"),
    };
    let agent = &handle.agent.name;
    let message = format!("agent `{agent}` gave no valid answer in {requests}");
    Outcome::new(kind, message).with_details(wrong).for_good()
}

/// Returns an answer as it is kept: as the step read it, and what the agent wrote if that is something else, so that another form of
/// answers can be read from it.
pub(crate) fn kept(
    reply: &Reply,
    answer: &Value,
    warnings: &[String],
    used: &RequestUsage,
) -> Value {
    let mut kept = json!({ "answer": answer, "warnings": warnings, "usage": used.to_json() });
    if *answer != reply.text {
        kept["text"] = reply.text.as_str().into();
        kept["structured"] = json!(reply.structured);
    }
    kept
}

/// Returns a kept answer in the form that the step declares now, with warnings; `None` if it cannot be read so.
pub(super) fn reread(
    mut kept: Value,
    task: &AgentTask<'_>,
    has_schema: bool,
) -> Option<(Value, Vec<String>)> {
    let structured = Some(&kept["structured"]).filter(|value| !value.is_null());
    if let Some(text) = kept["text"].as_str().or(kept["answer"].as_str()) {
        return read(text, structured, task.answer, task.defaults, has_schema).ok();
    }
    let warnings = kept["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(|line| Some(line.as_str()?.to_owned()));
    let warnings = warnings.collect();
    let is_value = task.answer != AnswerForm::Text;
    is_value.then(|| (kept["answer"].take(), warnings))
}
