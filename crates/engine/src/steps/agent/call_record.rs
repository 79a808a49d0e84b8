//! Converts replies and failures of calls to their records, and records back to replies.

use super::costs::CallCosts;
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::request::{Reply, StopReason};
use milepost_core::base::digest::Digest;
use milepost_core::model::agent::Agent;
use milepost_core::model::call::{ANSWERED, Heard, Sent};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};

/// How often a request is sent if the service is busy or out of reach and the agent declares no `tries`.
pub(crate) const TRIES: u32 = 6;

/// Returns the record of a reply.
pub(crate) fn recorded_reply(costs: &CallCosts, sent: &Sent, reply: &Reply, took_ms: u64) -> Heard {
    let stop = match &reply.stop {
        StopReason::End => "end",
        StopReason::Length => "length",
        StopReason::Refused => "refused",
        StopReason::Other(other) => other,
    };
    Heard {
        outcome: ANSWERED.to_owned(),
        message: None,
        usage: reply.usage,
        cost: costs.of_call(&sent.model, sent.batched, &reply.usage, reply.reported_cost),
        served: reply.served_model.clone(),
        request_id: reply.request_id.clone(),
        text: Some(reply.text.clone()),
        structured: reply.structured.clone(),
        stop: Some(stop.to_owned()),
        raw: Digest::of(&reply.raw),
        took_ms,
    }
}

/// Returns the record of a failure.
pub(crate) fn recorded_fault(
    costs: &CallCosts,
    sent: &Sent,
    fault: &CallFault,
    took_ms: u64,
) -> Heard {
    // Requests that never arrived or were rejected are free.
    let is_free = matches!(
        fault.kind,
        FaultKind::Auth
            | FaultKind::Money
            | FaultKind::RateLimited
            | FaultKind::Overloaded
            | FaultKind::BadRequest
            | FaultKind::TooLong
            | FaultKind::Connect
            | FaultKind::Status(_)
    );
    let cost = match fault.usage.total() {
        0 if is_free && fault.reported_cost.is_none() => Some(NanoUsd::ZERO),
        0 => fault.reported_cost,
        _ => costs.of_call(&sent.model, sent.batched, &fault.usage, fault.reported_cost),
    };
    Heard {
        outcome: kind_of(fault.kind).name().to_owned(),
        message: Some(fault.message.clone()),
        usage: fault.usage,
        cost,
        served: None,
        request_id: fault.request_id.clone(),
        text: None,
        structured: None,
        stop: None,
        raw: Digest::of(&fault.raw),
        took_ms,
    }
}

fn kind_of(kind: FaultKind) -> OutcomeKind {
    match kind {
        FaultKind::Auth => OutcomeKind::Auth,
        FaultKind::Money => OutcomeKind::Budget,
        FaultKind::Connect => OutcomeKind::Connect,
        FaultKind::Timeout => OutcomeKind::Timeout,
        FaultKind::Cut => OutcomeKind::Cut,
        FaultKind::Cancelled => OutcomeKind::Cancelled,
        FaultKind::ToolFailed => OutcomeKind::Exit,
        FaultKind::Unreadable => OutcomeKind::Parse,
        FaultKind::RateLimited
        | FaultKind::Overloaded
        | FaultKind::TooLong
        | FaultKind::BadRequest
        | FaultKind::Status(_) => OutcomeKind::Status,
    }
}

/// Returns the outcome of a failed call.
pub(crate) fn fault_outcome(agent: &Agent, fault: &CallFault) -> Outcome {
    let message = format!("agent `{}`: {}", agent.name, fault.message);
    let mut outcome = Outcome::new(kind_of(fault.kind), message);
    if fault.kind == FaultKind::Auth {
        "AuthenticationError".clone_into(&mut outcome.code);
    }
    outcome
}

/// Returns the recorded reply to a request.
pub(crate) fn replayed_reply(heard: &Heard, sent: &Sent) -> Reply {
    let text = heard.text.clone().unwrap_or_default();
    Reply {
        raw: text.clone().into_bytes(),
        text,
        structured: heard.structured.clone(),
        stop: match heard.stop.as_deref() {
            None | Some("end") => StopReason::End,
            Some("length") => StopReason::Length,
            Some("refused") => StopReason::Refused,
            Some(other) => StopReason::Other(other.to_owned()),
        },
        usage: heard.usage,
        reported_cost: heard.cost,
        asked_model: sent.model.clone(),
        served_model: heard.served.clone(),
        request_id: heard.request_id.clone(),
    }
}
