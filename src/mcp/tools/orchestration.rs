//! Tools for orchestrators: check a stage, wait for the file of a subagent, join batches.

use super::entry::{ToolCall, ToolEntry, schemas_of};
use super::run;
use crate::mcp::call::{Call, answer, done};
use crate::mcp::progress::RunProgress;
use crate::mcp::tool_error::ToolError;
use crate::view::orchestrate as sentences;
use milepost_core::base::words::count;
use milepost_engine::ops::orchestrate::aggregate::{
    AggregateOptions, Aggregated, Aggregation, aggregate,
};
use milepost_engine::ops::orchestrate::await_file::{
    AwaitOptions, CompleteFile, FileWait, WaitOutcome, WaitStep,
};
use milepost_engine::ops::orchestrate::completion::{Completion, stage_completion};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The longest timeout, in seconds.
const LONGEST: u64 = 3_600;

/// The error that the specification of the orchestration prescribes.
const TIMEOUT: &str = "Timeout waiting for subagent";

pub(super) const CHECK_STAGE_COMPLETION: ToolEntry = ToolEntry {
    name: "check_stage_completion",
    title: "Check that a stage is complete",
    about: "Verifies now that a stage is complete: its checkpoint matches the record, a run would find it up to date, and every \
            output has the recorded digest. `state` is the checkpoint; if the stage is not complete, `missing` lists the reasons.",
    reads: true,
    schemas: schemas_of::<StageArguments, CompletionResult>,
    call: ToolCall::Once(|call| {
        let wanted: StageArguments = call.arguments()?;
        let found = stage_completion(&call.request, wanted.stage_num)?;
        let whole = format!("`{}` in the workspace", found.state_file);
        let missing = sentences::missing(&found);
        done(
            &CompletionResult {
                completion: found,
                missing,
            },
            &whole,
        )
    }),
};

/// Whether a stage is complete.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct CompletionResult {
    #[serde(flatten)]
    completion: Completion,
    /// Missing parts, a line each; empty if the stage is complete.
    missing: Vec<String>,
}

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StageArguments {
    /// Number of the stage, such as 3 for `stage_3_complete.json`
    stage_num: u32,
}

pub(super) const WAIT_FOR_SUBAGENT: ToolEntry = ToolEntry {
    name: "wait_for_subagent",
    title: "Wait for the file of a subagent",
    about: "Waits until a file of the workspace exists, has not changed for 1 s, matches its declared schema and contains its declared \
            marker. Returns its size, digest and number of elements, not its content. After a timeout, `error` is \
            \"Timeout waiting for subagent\" and `why` names what is missing; call again to wait longer.",
    reads: true,
    schemas: schemas_of::<WaitArguments, CompleteFile>,
    call: ToolCall::Wait(wait),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WaitArguments {
    /// File, relative to the workspace
    output_file: String,
    /// Wait at most this many seconds
    #[serde(default = "timeout")]
    #[cfg_attr(debug_assertions, schemars(range(min = 0, max = 3600)))]
    timeout: u64,
}

fn timeout() -> u64 {
    120
}

/// A call that waits for the file of a subagent.
pub(in crate::mcp) struct SubagentWait {
    wait: FileWait,
    /// The timeout, in seconds.
    limit: f64,
    /// The progress that was reported last.
    last: f64,
}

/// The result of one check of the file.
pub(in crate::mcp) enum WaitStatus {
    /// The result of the call.
    Done(Value),
    /// The next check is due after this pause.
    Again(Duration),
}

fn wait(call: &Call) -> Result<SubagentWait, ToolError> {
    let wanted: WaitArguments = call.arguments()?;
    if wanted.timeout > LONGEST {
        return Err(ToolError::new(
            "arguments",
            format!(
                "`timeout` is {} s; the maximum is {LONGEST} s",
                wanted.timeout
            ),
            "use a shorter timeout, and call again while `code` is \"timeout\"",
        ));
    }
    let limit = wanted.timeout as f64;
    let wanted = AwaitOptions::new(wanted.output_file, Duration::from_secs(wanted.timeout));
    Ok(SubagentWait {
        wait: FileWait::begin(&call.request, wanted)?,
        limit,
        last: 0.0,
    })
}

impl SubagentWait {
    /// Looks at the file once.
    ///
    /// # Errors
    /// After the timeout, if the call is cancelled, or if the file cannot be read.
    pub(in crate::mcp) fn check(&mut self, call: &Call) -> Result<WaitStatus, ToolError> {
        let Self { wait, limit, last } = self;
        let step = wait.check(
            &mut |waited, incomplete| {
                *last = waited.as_secs_f64().max(*last + 0.001);
                call.progress.report(
                    *last,
                    Some(limit.max(*last)),
                    sentences::incomplete(incomplete),
                );
            },
            call.stop(),
        )?;
        match step {
            WaitStep::Pause(pause) => Ok(WaitStatus::Again(pause)),
            WaitStep::Over(WaitOutcome::Complete(file)) => {
                done(&file, &format!("`{}`", file.path)).map(WaitStatus::Done)
            }
            WaitStep::Over(WaitOutcome::Timeout(incomplete)) => {
                let why = sentences::incomplete(&incomplete);
                let hint = format!("{why}; call again to wait longer");
                let error = ToolError::new("timeout", TIMEOUT, hint);
                Err(error
                    .with("output_file", &incomplete.output_file)
                    .with("lack", incomplete.lack)
                    .with("why", &why)
                    .with("violations", &incomplete.violations))
            }
            WaitStep::Over(WaitOutcome::Stopped) => Err(ToolError::cancelled()),
        }
    }
}

pub(super) const AGGREGATE_BATCH_RESULTS: ToolEntry = ToolEntry {
    name: "aggregate_batch_results",
    title: "Join classified batches",
    about: "Joins the files `batch_*_classified.json` of a folder into one file `{\"elements\": […], \"count\": N}`. The stage that \
            writes the batches must be complete, and every element must have `global_id`, `ifc_type` and `material_primary`. If a \
            stage writes `output_file`, that stage runs. Returns the number of elements by type, not the elements.",
    reads: false,
    schemas: schemas_of::<AggregateArguments, Aggregated>,
    call: ToolCall::Once(join),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AggregateArguments {
    /// Folder of the batches, relative to the workspace
    batch_dir: String,
    /// File to write, relative to the workspace
    output_file: String,
}

fn join(call: &Call) -> Result<Value, ToolError> {
    let wanted: AggregateArguments = call.arguments()?;
    let request = call.request_as(&wanted.output_file);
    let wanted = AggregateOptions {
        batch_dir: wanted.batch_dir,
        output_file: wanted.output_file,
    };
    let mut show = RunProgress::new(&call.progress);
    match aggregate(&request, &wanted, &mut show, call.stop())? {
        Aggregation::Done(joined) => answer(true, &joined, &format!("`{}`", joined.path)),
        Aggregation::MissingFields(lacking) => Err(ToolError::new(
            "missing_fields",
            format!(
                "{} required fields",
                count(lacking.count, "element lacks", "elements lack")
            ),
            "`elements` lists them with their fields: correct their files; `count` is their number",
        )
        .with("elements", &lacking.elements)
        .with("count", lacking.count)),
        Aggregation::NotComplete(found) => Err(ToolError::new(
            "not_complete",
            format!("stage `{}`, which writes these batches, is not complete", found.stage),
            format!("call `run` with the target `{}`; `missing` lists what is missing", found.stage),
        )
        .with("stage", &found.stage)
        .with("missing", sentences::missing(&found))),
        Aggregation::Untracked(files) => Err(ToolError::new(
            "altered",
            "the folder contains files that no stage wrote",
            "remove the files that `files` lists: files that no stage wrote are not joined with verified ones",
        )
        .with("files", files)),
        Aggregation::Run(report) => Err(run::run_error(&report, &call.request.invocation)),
    }
}
