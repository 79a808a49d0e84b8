//! Converts replies and failures of calls to their records, and records back to replies.

use super::costs::{CallCosts, ReportedUsage};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::request::{Reply, StopReason};
use milepost_core::base::digest::Digest;
use milepost_core::model::agent::Agent;
use milepost_core::model::call::{ANSWERED, CallResponse, Estimated, SentCall};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::usage::Usage;

/// How often a request is sent if the service is busy or out of reach and the agent declares no `tries`.
pub(crate) const TRIES: u32 = 6;

/// Returns the record of a reply or failure, and its bytes.
pub(crate) fn recorded<'a>(
    costs: &CallCosts,
    sent: &SentCall,
    replied: &'a Result<Reply, CallFault>,
    took_ms: u64,
) -> (CallResponse, &'a [u8]) {
    match replied {
        Ok(reply) => (recorded_reply(costs, sent, reply, took_ms), &reply.raw),
        Err(fault) => (recorded_fault(costs, sent, fault, took_ms), &fault.raw),
    }
}

/// Returns the record of a reply.
fn recorded_reply(costs: &CallCosts, sent: &SentCall, reply: &Reply, took_ms: u64) -> CallResponse {
    let stop = match &reply.stop {
        StopReason::End => "end",
        StopReason::Length => "length",
        StopReason::Refused => "refused",
        StopReason::Other(other) => other,
    };
    let has_output = !reply.text.is_empty() || reply.structured.is_some();
    let report = ReportedUsage {
        usage: reply.usage,
        cost: reply.reported_cost,
        is_whole: reply.usage.output > 0 || !has_output || reply.reported_cost.is_some(),
        text: reply.text.len() as u64,
    };
    let (cost, estimated) = costs.charge(sent, &report);
    CallResponse {
        outcome: ANSWERED.to_owned(),
        message: None,
        usage: believed(reply.usage, estimated),
        cost,
        estimated,
        served: reply.served_model.clone(),
        request_id: reply.request_id.clone(),
        text: Some(reply.text.clone()),
        structured: reply.structured.clone(),
        stop: Some(stop.to_owned()),
        raw: Digest::of(&reply.raw),
        took_ms,
    }
}

/// Returns reported usage; none if it is implausible.
fn believed(usage: Usage, estimated: Option<Estimated>) -> Usage {
    match estimated {
        Some(Estimated::ImplausibleUsage) => Usage::NONE,
        _ => usage,
    }
}

/// Returns the record of a failure.
fn recorded_fault(
    costs: &CallCosts,
    sent: &SentCall,
    fault: &CallFault,
    took_ms: u64,
) -> CallResponse {
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
    let broke_off = matches!(
        fault.kind,
        FaultKind::Cut | FaultKind::Timeout | FaultKind::Cancelled
    );
    let report = ReportedUsage {
        usage: fault.usage,
        cost: fault.reported_cost,
        is_whole: !broke_off,
        text: 0,
    };
    let (cost, estimated) = match (fault.usage.total(), fault.reported_cost) {
        (0, None) if is_free => (Some(NanoUsd::ZERO), None),
        _ => costs.charge(sent, &report),
    };
    CallResponse {
        outcome: kind_of(fault.kind).name().to_owned(),
        message: Some(fault.message.clone()),
        usage: believed(fault.usage, estimated),
        cost,
        estimated,
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

/// Returns a reply as it was recorded.
pub(crate) fn replayed_reply(response: &CallResponse) -> Reply {
    let text = response.text.clone().unwrap_or_default();
    Reply {
        raw: text.clone().into_bytes(),
        text,
        structured: response.structured.clone(),
        stop: match response.stop.as_deref() {
            None | Some("end") => StopReason::End,
            Some("length") => StopReason::Length,
            Some("refused") => StopReason::Refused,
            Some(other) => StopReason::Other(other.to_owned()),
        },
        usage: response.usage,
        reported_cost: response.cost,
        served_model: response.served.clone(),
        request_id: response.request_id.clone(),
    }
}
