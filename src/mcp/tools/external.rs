//! Tools for external agents: lease a batch, submit its answer, release it.

use super::entry::{ToolCall, ToolEntry, schemas_of};
use crate::mcp::call::{Call, answer, done};
use crate::mcp::tool_error::ToolError;
use crate::view::external as sentences;
use milepost_core::base::words::count;
#[cfg(debug_assertions)]
use milepost_core::plan::options::TextOrNumber;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::external::{
    LeaseOptions, Leased, Left, Nothing, Refusal, Released, Submission, Submitted, Violation,
    WhyNothing, next_batch, release_batch, submit_batch,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the complete data of a lease or a submission is.
const FILES: &str = "the files that the result names";

pub(super) const NEXT_BATCH: ToolEntry = ToolEntry {
    name: "next_batch",
    title: "Lease the next batch",
    about: "Leases the next batch of a stage whose agent is external: `input_file` contains the questions, `prompt_file` the \
            prompt, `schema` the JSON Schema of an answer, and `output_file` is the exact path to write the answer to. Answer the \
            batch, then call `submit_batch` with the lease. A batch whose lease has expired is leased to the next client. If there is \
            no batch to lease, `nothing` gives the reason.",
    reads: false,
    schemas: schemas_of::<LeaseArguments, NextBatchResult>,
    call: ToolCall::Once(|call| {
        let arguments: LeaseArguments = call.arguments()?;
        let options = LeaseOptions {
            stage: arguments.stage,
            client: arguments.client.unwrap_or_else(|| call.client.clone()),
            is_server: true,
            seconds: arguments.seconds,
            with_prompt: arguments.with_prompt,
        };
        let found = next_batch(&call.request, &options, call.stop())?;
        let result = NextBatchResult {
            leased: found.leased,
            nothing: found
                .nothing
                .map(|nothing| ExplainedNothing::of(nothing, &call.request.invocation)),
            left: found.left,
        };
        match &result.nothing {
            Some(explained) if is_wrong(explained.nothing.reason) => {
                let code = code(explained.nothing.reason);
                let error = ToolError::new(code, &explained.message, &explained.hint);
                Err(error.with("nothing", explained).with("left", result.left))
            }
            _ => done(&result, FILES),
        }
    }),
};

#[derive(Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct LeaseArguments {
    /// Stage to take a batch from, by name or number [default: the first one with a batch]
    #[cfg_attr(debug_assertions, schemars(with = "Option<TextOrNumber>"))]
    stage: Option<String>,
    /// Name to record the answers under [default: the name of the client]
    client: Option<String>,
    /// Seconds until the lease expires [default: 600]
    seconds: Option<u64>,
    /// Return the text of the prompt too, not only its file
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
    /// The remedy.
    hint: String,
}

impl ExplainedNothing {
    fn of(nothing: Nothing, invocation: &Invocation) -> Self {
        let advice = sentences::nothing(&nothing, invocation);
        Self {
            nothing,
            message: advice.message,
            hint: advice.hint,
        }
    }
}

/// Returns true if waiting or running does not help.
fn is_wrong(reason: WhyNothing) -> bool {
    match reason {
        WhyNothing::Complete | WhyNothing::Leased | WhyNothing::Approval | WhyNothing::Ready => {
            false
        }
        WhyNothing::Blocked
        | WhyNothing::Failed
        | WhyNothing::Modified
        | WhyNothing::NotExternal => true,
    }
}

fn code(reason: WhyNothing) -> &'static str {
    match reason {
        WhyNothing::Complete => "complete",
        WhyNothing::Leased => "leased",
        WhyNothing::Approval => "approval",
        WhyNothing::Ready => "ready",
        WhyNothing::Blocked => "not_complete",
        WhyNothing::Failed => "failed",
        WhyNothing::Modified => "altered",
        WhyNothing::NotExternal => "not_external",
    }
}

pub(super) const SUBMIT_BATCH: ToolEntry = ToolEntry {
    name: "submit_batch",
    title: "Submit the answer to a batch",
    about: "Submits the answer to a leased batch. A valid answer is published. An invalid one is rejected: `violations` lists everything \
            that is wrong, each with a JSON pointer, and the lease stays. Correct the answer and submit it again. Without `answer`, \
            Milepost reads the `output_file` of the lease.",
    reads: false,
    schemas: schemas_of::<SubmitArguments, SubmitResult>,
    call: ToolCall::Once(submit),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct SubmitArguments {
    /// Lease that `next_batch` returned
    lease: String,
    /// Name that the lease was taken under
    client: Option<String>,
    /// The answer, instead of the file: JSON that matches `schema`, or a text if the answer is not JSON
    answer: Option<Value>,
}

/// The outcome of an answer.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct SubmitResult {
    #[serde(flatten)]
    submitted: Submitted,
    /// Everything that is wrong with the answer. The lease stays: correct these and submit again; valid answers are kept.
    violations: Vec<ExplainedViolation>,
}

/// One thing that is wrong with an answer.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct ExplainedViolation {
    #[serde(flatten)]
    violation: Violation,
    /// The expected value.
    expected: String,
    /// The remedy.
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

fn submit(call: &Call) -> Result<Value, ToolError> {
    let arguments: SubmitArguments = call.arguments()?;
    let submission = Submission {
        lease: arguments.lease,
        client: arguments.client,
        answer: arguments.answer,
    };
    let submitted = submit_batch(&call.request, &submission, call.stop())?;
    let result = SubmitResult::of(submitted);
    if result.submitted.accepted {
        return done(&result, FILES);
    }
    let error = match &result.submitted.refused {
        Some(refused) => refusal(refused),
        None => ToolError::new(
            "invalid",
            format!(
                "the answer is not valid: {}",
                count(result.violations.len() as u64, "violation", "violations")
            ),
            "correct what `violations` lists and submit the answer again; the lease stays",
        ),
    };
    Err(with_all(error, &result))
}

pub(super) const RELEASE_BATCH: ToolEntry = ToolEntry {
    name: "release_batch",
    title: "Release a batch",
    about: "Ends the lease of a batch, so that another client can take it. Valid answers that were submitted stay.",
    reads: false,
    schemas: schemas_of::<ReleaseArguments, Released>,
    call: ToolCall::Once(|call| {
        let lease: ReleaseArguments = call.arguments()?;
        let given = release_batch(
            &call.request,
            &lease.lease,
            lease.client.as_deref(),
            call.stop(),
        )?;
        match &given.refused {
            Some(refused) => Err(with_all(refusal(refused), &given)),
            None => done(&given, FILES),
        }
    }),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ReleaseArguments {
    /// Lease that `next_batch` returned
    lease: String,
    /// Name that the lease was taken under
    client: Option<String>,
}

fn refusal(refused: &Refusal) -> ToolError {
    let advice = sentences::refusal(refused);
    ToolError::new(refused.code(), advice.message, advice.hint)
}

/// Adds the fields of the result to the error.
fn with_all(mut tool_error: ToolError, data: &impl Serialize) -> ToolError {
    if let Ok(Value::Object(fields)) = answer(false, data, FILES) {
        let known = ["success", "refused"];
        let others = fields
            .into_iter()
            .filter(|(name, _)| !known.contains(&name.as_str()));
        tool_error.more.extend(others);
    }
    tool_error
}
