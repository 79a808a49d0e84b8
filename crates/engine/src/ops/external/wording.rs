//! What clients outside are told in words: why a lease does not hold, and what is wrong with an answer.

use super::shapes::{Refusal, Violation};
use crate::run::agents::external::{What, Wrong};
use milepost_core::model::outcome::Outcome;
use milepost_store::store::leases::{Lease, LeaseState};

/// Ids that are named where one is not among them.
const NAMED: usize = 20;

fn refusal(code: &str, message: String, hint: impl Into<String>) -> Refusal {
    Refusal {
        code: code.to_owned(),
        message,
        hint: hint.into(),
    }
}

/// `classify/batch_1`.
pub(crate) fn place(lease: &Lease) -> String {
    if lease.batch.is_empty() {
        lease.stage.clone()
    } else {
        format!("{}/{}", lease.stage, lease.batch)
    }
}

/// A lease that there is not.
pub(crate) fn unknown_lease(id: &str) -> Refusal {
    refusal(
        "unknown_lease",
        format!("this workspace has no lease `{id}`"),
        "take a batch by next_batch, and hand in under the lease that it gives",
    )
}

/// A lease of another client.
pub(crate) fn not_theirs(lease: &Lease, client: Option<&str>) -> Option<Refusal> {
    let client = client.filter(|client| *client != lease.client)?;
    Some(refusal(
        "foreign_lease",
        format!(
            "{} is leased to `{}`, not to `{client}`",
            place(lease),
            lease.client
        ),
        "take a batch of your own by next_batch",
    ))
}

/// A lease that was handed in or given back.
pub(crate) fn over(lease: &Lease) -> Refusal {
    match lease.state {
        LeaseState::Released => refusal(
            "lease_released",
            format!("the lease of {} was given back", place(lease)),
            "take the batch again by next_batch, and hand in the same answer under the lease that it gives",
        ),
        _ => refusal(
            "already_submitted",
            format!(
                "{} was handed in under this lease, and is made",
                place(lease)
            ),
            "go on with next_batch; to correct what is made, use the inputs of the project",
        ),
    }
}

/// A lease that is over by its time.
pub(crate) fn expired(lease: &Lease) -> Refusal {
    refusal(
        "lease_expired",
        format!("the lease of {} expired at {}", place(lease), lease.expires),
        "what was right in the answer is kept; take the batch again by next_batch, and answer what it still asks",
    )
}

/// A batch that is made.
pub(crate) fn already_made(lease: &Lease) -> Refusal {
    refusal(
        "already_made",
        format!("{} is made", place(lease)),
        "go on with next_batch",
    )
}

/// A batch that is another than the one that was leased.
pub(crate) fn stale(lease: &Lease) -> Refusal {
    refusal(
        "stale",
        format!(
            "what {} depends on changed since it was leased",
            place(lease)
        ),
        "what was right in the answer is kept as far as it is still asked; take the batch again by next_batch",
    )
}

/// An answer that is not where it shall be.
pub(crate) fn answer_missing(lease: &Lease, path: &str, why: &str) -> Refusal {
    refusal(
        "answer_missing",
        format!("there is no answer to {} at `{path}`: {why}", place(lease)),
        "write the answer to exactly this file, or hand it in with the call",
    )
}

/// A batch that could not be made for another reason than the answer.
pub(crate) fn not_made(code: &str, lease: &Lease, why: &str) -> Refusal {
    refusal(
        code,
        format!("{} was not made: {why}", place(lease)),
        "the answer is kept: put that right, then run the stage, or hand in again",
    )
}

/// What is wrong with an answer, for whoever gave it. `ids` are those of the questions.
pub(crate) fn violation(wrong: &Wrong, ids: &[&str]) -> Violation {
    let id = wrong.id.as_deref().unwrap_or_default();
    let (code, expected, hint) = match &wrong.what {
        What::Json => (
            "not_json",
            "the answer alone, as one value in its form".to_owned(),
            "write the answer again, without any text around it".to_owned(),
        ),
        What::Shape => (
            "wrong_shape",
            "a JSON array with an object for each question".to_owned(),
            "put every answer into one array, each with the `id` of its question".to_owned(),
        ),
        What::NoId => (
            "no_id",
            "`id`: the id of the question, as it was asked".to_owned(),
            "say which question this answers, or leave it out".to_owned(),
        ),
        What::Unknown => {
            let named = ids.iter().take(NAMED).copied().collect::<Vec<_>>();
            let more = if ids.len() > NAMED { ", …" } else { "" };
            (
                "unknown_id",
                format!("one of the ids that were asked: {}{more}", named.join(", ")),
                format!("leave `{id}` out, or give it the id that was asked"),
            )
        }
        What::Missing => (
            "missing",
            format!("an answer with `id` \"{id}\""),
            format!("answer `{id}`"),
        ),
        What::Doubled => (
            "doubled",
            format!("exactly one answer with `id` \"{id}\""),
            format!("leave one answer to `{id}`"),
        ),
        What::Schema(keyword) => (
            "schema",
            format!("what the schema says of this place (`{keyword}`)"),
            "correct the value at the pointer by the schema of the answer".to_owned(),
        ),
    };
    Violation {
        code: code.to_owned(),
        pointer: wrong.pointer.clone(),
        id: wrong.id.clone(),
        message: wrong.message.clone(),
        expected,
        hint,
    }
}

/// What a check, conservation or the schema of an output found wrong in what was made of an answer.
pub(crate) fn of_outcome(outcome: &Outcome) -> Vec<Violation> {
    let one = |message: String| Violation {
        code: outcome.code.clone(),
        pointer: String::new(),
        id: None,
        message,
        expected: outcome.message.clone(),
        hint: "correct the answers that this comes from, and hand those in again".to_owned(),
    };
    if outcome.details.is_empty() {
        return vec![one(outcome.message.clone())];
    }
    outcome.details.iter().cloned().map(one).collect()
}
