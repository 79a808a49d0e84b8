//! Refusals of leases, and violations of answers, as data.

use super::results::{Expected, Refusal, Violation, WhyRefused};
use crate::run::agents::external::{ReplyError, ReplyErrorKind};
use jiff::Timestamp;
use milepost_core::model::outcome::Outcome;
use milepost_core::plan::expand::batch_name;
use milepost_store::store::leases::{Lease, LeaseState};
use milepost_store::store::lock::Holder;

/// Returns the batch of a lease as `STAGE/BATCH`.
pub(super) fn place(lease: &Lease) -> String {
    batch_name(&lease.stage, &lease.batch)
}

pub(super) fn refusal(lease: &Lease, why: WhyRefused) -> Refusal {
    let of = place(lease);
    Refusal { of, why }
}

pub(super) fn unknown(id: &str) -> Refusal {
    Refusal {
        of: id.to_owned(),
        why: WhyRefused::UnknownLease,
    }
}

/// Returns a refusal if the lease was submitted or released, or if another client holds it: one of another name, or one of another
/// server that lives. If only another machine or container knows whether that one lives, it has the lease until it expires.
pub(super) fn unusable(lease: &Lease, client: Option<&str>, now: Timestamp) -> Option<Refusal> {
    let other = client.filter(|client| *client != lease.client);
    let lives = |server: &Holder| server.exists().unwrap_or(now < lease.expires);
    let is_other = |server: &Holder| !server.is_this() && lives(server);
    let why = if other.is_some() || lease.server.as_ref().is_some_and(is_other) {
        WhyRefused::ForeignLease {
            holder: lease.client.clone(),
            client: other.map(str::to_owned),
        }
    } else {
        match lease.state {
            LeaseState::Leased => return None,
            LeaseState::Released => WhyRefused::LeaseReleased,
            LeaseState::Submitted => WhyRefused::AlreadySubmitted,
        }
    };
    Some(refusal(lease, why))
}

/// Returns what is wrong with a reply. `ids` are those of the questions.
pub(super) fn violation(wrong: ReplyError, ids: &[&str]) -> Violation {
    let (code, expected) = match wrong.kind {
        ReplyErrorKind::Json => ("not_json", Expected::Json),
        ReplyErrorKind::Shape => ("wrong_shape", Expected::List),
        ReplyErrorKind::NoId => ("no_id", Expected::Id),
        ReplyErrorKind::Unknown => {
            let ids = ids.iter().map(|&id| id.to_owned()).collect();
            ("unknown_id", Expected::OneOf(ids))
        }
        ReplyErrorKind::Missing => ("missing", Expected::Answer),
        ReplyErrorKind::Doubled => ("doubled", Expected::OneAnswer),
        ReplyErrorKind::Schema(keyword) => ("schema", Expected::Keyword(keyword)),
    };
    Violation {
        code: code.to_owned(),
        pointer: wrong.pointer,
        id: wrong.id,
        message: wrong.message,
        expected,
    }
}

/// Returns what a check, conservation or the schema of an output found wrong with outputs built from an answer.
pub(super) fn of_outcome(outcome: &Outcome) -> Vec<Violation> {
    let lines = match outcome.details.as_slice() {
        [] => std::slice::from_ref(&outcome.message),
        details => details,
    };
    let violation = |message: &String| Violation {
        code: outcome.code.clone(),
        pointer: String::new(),
        id: None,
        message: message.clone(),
        expected: Expected::Outcome(outcome.message.clone()),
    };
    lines.iter().map(violation).collect()
}
