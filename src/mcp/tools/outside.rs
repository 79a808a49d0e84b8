//! Tools for agents outside: take a batch, hand in its answer, give it back.

use super::super::call::{Call, answer, done};
use super::super::fault::Fault;
use super::{Row, schemas_of};
use crate::view::external as sentences;
use milepost_engine::ops::external::{
    LeaseOptions, Leased, Left, Nothing, Refusal, Released, Submission, Submitted, Violation,
    WhyNothing, next_batch, release_batch, submit_batch,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the whole of what is handed in, or leased, is.
const FILES: &str = "the files that the result names";

pub(super) const NEXT_BATCH: Row = Row {
    name: "next_batch",
    title: "Take the next batch",
    about: "Leases the next batch of a stage whose agent is external: `input_file` holds the questions, `prompt_file` the \
            prompt, `schema` the form of an answer, `output_file` the exact path to write it to. Answer it, then call `submit_batch` \
            with the lease. A lease that expires goes to whoever asks next. When no batch is leased, `nothing` says why.",
    reads: false,
    schemas: schemas_of::<Which, NextBatchResult>,
    call: |call| {
        let which: Which = call.arguments()?;
        let wanted = LeaseOptions {
            stage: which.stage,
            client: which.client.unwrap_or_else(|| call.client.clone()),
            seconds: which.seconds,
            with_prompt: which.with_prompt,
        };
        let found = next_batch(&call.desk.request, &wanted)?;
        let result = NextBatchResult {
            leased: found.leased,
            nothing: found.nothing.map(ExplainedNothing::of),
            left: found.left,
        };
        match &result.nothing {
            Some(explained) if is_wrong(explained.nothing.reason) => {
                let code = code(explained.nothing.reason);
                let fault = Fault::new(code, &explained.message, &explained.hint);
                Err(fault.with("nothing", explained).with("left", result.left))
            }
            _ => done(&result, FILES),
        }
    },
};

#[derive(Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct Which {
    /// The stage, by name or number; none: the first that has a batch
    stage: Option<String>,
    /// The name under which the answers are kept; none: the client's own
    client: Option<String>,
    /// How long the lease holds, in seconds; none: 600
    seconds: Option<u64>,
    /// Give the text of the prompt, besides the file that holds it
    with_prompt: bool,
}

/// The next batch, or the reason why there is none.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct NextBatchResult {
    /// The leased batch; null: `nothing` has the reason.
    leased: Option<Leased>,
    /// Why no batch was leased.
    nothing: Option<ExplainedNothing>,
    /// The progress of the stage.
    left: Option<Left>,
}

/// Why no batch was leased.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct ExplainedNothing {
    #[serde(flatten)]
    nothing: Nothing,
    /// The reason in a sentence.
    message: String,
    /// What to do.
    hint: String,
}

impl ExplainedNothing {
    fn of(nothing: Nothing) -> Self {
        let advice = sentences::nothing(&nothing);
        Self {
            nothing,
            message: advice.message,
            hint: advice.hint,
        }
    }
}

/// Whether something is in the way that waiting or going on does not mend.
fn is_wrong(reason: WhyNothing) -> bool {
    match reason {
        WhyNothing::Complete | WhyNothing::Leased | WhyNothing::Ready => false,
        WhyNothing::Blocked
        | WhyNothing::Failed
        | WhyNothing::Altered
        | WhyNothing::NotExternal => true,
    }
}

fn code(reason: WhyNothing) -> &'static str {
    match reason {
        WhyNothing::Complete => "complete",
        WhyNothing::Leased => "leased",
        WhyNothing::Ready => "ready",
        WhyNothing::Blocked => "not_complete",
        WhyNothing::Failed => "failed",
        WhyNothing::Altered => "altered",
        WhyNothing::NotExternal => "not_external",
    }
}

pub(super) const SUBMIT_BATCH: Row = Row {
    name: "submit_batch",
    title: "Hand in the answer to a batch",
    about: "Hands in the answer to a leased batch: validated, conserved and published; or refused with everything that is wrong, each \
            with its pointer. The lease is kept then: correct what `violations` names, and hand in again. Without `answer`, what lies \
            at the lease's `output_file` is taken.",
    reads: false,
    schemas: schemas_of::<HandedIn, SubmitResult>,
    call: submit,
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct HandedIn {
    /// The lease that `next_batch` gave
    lease: String,
    /// Who hands in, if the lease was taken under a name
    client: Option<String>,
    /// The answer, instead of the file: JSON as `schema` asks for it; of another form a text
    answer: Option<Value>,
}

/// The outcome of an answer.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct SubmitResult {
    #[serde(flatten)]
    submitted: Submitted,
    /// Everything that is wrong with the answer. The lease stays: correct these and submit again; right answers are kept.
    violations: Vec<ExplainedViolation>,
}

/// One thing that is wrong with an answer.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct ExplainedViolation {
    #[serde(flatten)]
    violation: Violation,
    /// What was expected.
    expected: String,
    /// What to do.
    hint: String,
}

impl SubmitResult {
    fn of(mut submitted: Submitted) -> Self {
        let violations = std::mem::take(&mut submitted.violations).into_iter();
        let explained = violations.map(|violation| {
            let advice = sentences::violation(&violation);
            ExplainedViolation {
                violation,
                expected: advice.message,
                hint: advice.hint,
            }
        });
        Self {
            violations: explained.collect(),
            submitted,
        }
    }
}

fn submit(call: &Call<'_>) -> Result<Value, Fault> {
    let handed: HandedIn = call.arguments()?;
    let submission = Submission {
        lease: handed.lease,
        client: handed.client,
        answer: handed.answer,
    };
    let submitted = submit_batch(&call.desk.request, &submission, call.stop)?;
    let result = SubmitResult::of(submitted);
    if result.submitted.accepted {
        return done(&result, FILES);
    }
    let fault = match &result.submitted.refused {
        Some(refused) => refusal(refused),
        None => Fault::new(
            "invalid",
            format!(
                "the answer was refused: it has {} mistakes",
                result.violations.len()
            ),
            "correct what `violations` lists and submit again; the lease stays",
        ),
    };
    Err(with_all(fault, &result))
}

pub(super) const RELEASE_BATCH: Row = Row {
    name: "release_batch",
    title: "Give a batch back",
    about: "Gives a leased batch back, so that it goes to whoever asks next. Right answers that were handed in are kept.",
    reads: false,
    schemas: schemas_of::<Lease, Released>,
    call: |call| {
        let lease: Lease = call.arguments()?;
        let given = release_batch(&call.desk.request, &lease.lease, lease.client.as_deref())?;
        match &given.refused {
            Some(refused) => Err(with_all(refusal(refused), &given)),
            None => done(&given, FILES),
        }
    },
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Lease {
    /// The lease that `next_batch` gave
    lease: String,
    /// Who gives it back, if the lease was taken under a name
    client: Option<String>,
}

fn refusal(refused: &Refusal) -> Fault {
    let advice = sentences::refusal(refused);
    Fault::new(refused.code(), advice.message, advice.hint)
}

/// The fault with all that is known besides.
fn with_all(mut fault: Fault, data: &impl Serialize) -> Fault {
    if let Ok(Value::Object(fields)) = answer(false, data, FILES) {
        let known = ["success", "refused"];
        let others = fields
            .into_iter()
            .filter(|(name, _)| !known.contains(&name.as_str()));
        fault.more.extend(others);
    }
    fault
}
