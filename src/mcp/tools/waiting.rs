//! Tools for whoever orchestrates: is a stage complete, is a subagent's file there, what do the batches make together.

use super::super::call::{Call, answer, done};
use super::super::fault::Fault;
use super::super::progress::Show;
use super::{Row, running, schemas_of};
use crate::view::orchestrate as sentences;
use milepost_engine::ops::orchestrate::aggregate::{
    AggregateOptions, Aggregated, Aggregation, aggregate,
};
use milepost_engine::ops::orchestrate::await_file::{
    AwaitOptions, CompleteFile, WaitOutcome, await_file,
};
use milepost_engine::ops::orchestrate::completion::{Completion, stage_completion};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The longest that is waited, in seconds.
const LONGEST: u64 = 3_600;

/// What the design of the orchestration says when nothing came.
const TIMEOUT: &str = "Timeout waiting for subagent";

pub(super) const CHECK_STAGE_COMPLETION: Row = Row {
    name: "check_stage_completion",
    title: "Is a stage complete?",
    about: "Says whether a stage is complete, verified now: its checkpoint is as recorded, a run would do nothing about it, and every \
            file that it made has the recorded digest. `state` is the checkpoint; else `missing` says what is missing.",
    reads: true,
    schemas: schemas_of::<Stage, CompletionResult>,
    call: |call| {
        let wanted: Stage = call.arguments()?;
        let found = stage_completion(&call.desk.request, wanted.stage_num)?;
        let whole = format!("`{}` in the workspace", found.state_file);
        let missing = sentences::missing(&found);
        done(
            &CompletionResult {
                completion: found,
                missing,
            },
            &whole,
        )
    },
};

/// Whether a stage is complete.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct CompletionResult {
    #[serde(flatten)]
    completion: Completion,
    /// What is missing, a line each; empty if the stage is complete.
    missing: Vec<String>,
}

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Stage {
    /// The number of the stage: 3 of `stage_3_complete.json`
    stage_num: u32,
}

pub(super) const WAIT_FOR_SUBAGENT: Row = Row {
    name: "wait_for_subagent",
    title: "Wait for a subagent's file",
    about: "Waits until a file of the workspace is there, was left alone for 1 s, matches its declared schema and has its declared \
            marker. Gives its size, digest and number of elements, not its content. When the time is over: `error` is \
            \"Timeout waiting for subagent\", and `why` says what is missing; call again to wait longer.",
    reads: true,
    schemas: schemas_of::<File, CompleteFile>,
    call: wait,
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct File {
    /// The file, relative to the workspace
    output_file: String,
    /// Seconds to wait at most
    #[serde(default = "timeout")]
    #[cfg_attr(debug_assertions, schemars(range(min = 0, max = 3600)))]
    timeout: u64,
}

fn timeout() -> u64 {
    120
}

fn wait(call: &Call<'_>) -> Result<Value, Fault> {
    let wanted: File = call.arguments()?;
    if wanted.timeout > LONGEST {
        return Err(Fault::new(
            "arguments",
            format!("`timeout` is {} s: at most {LONGEST} s", wanted.timeout),
            "wait for less, and call again while `code` is \"timeout\"",
        ));
    }
    let limit = wanted.timeout as f64;
    let wanted = AwaitOptions::new(wanted.output_file, Duration::from_secs(wanted.timeout));
    let mut last = 0.0;
    let waited = await_file(
        &call.desk.request,
        &wanted,
        &mut |waited, incomplete| {
            last = waited.as_secs_f64().max(last + 0.001);
            call.teller.tell(
                last,
                Some(limit.max(last)),
                sentences::incomplete(incomplete),
            );
        },
        call.stop,
    )?;
    match waited {
        WaitOutcome::Complete(file) => done(&file, &format!("`{}`", file.path)),
        WaitOutcome::Timeout(incomplete) => {
            let why = sentences::incomplete(&incomplete);
            let hint = format!("{why}; call again to wait longer");
            let fault = Fault::new("timeout", TIMEOUT, hint);
            Err(fault
                .with("output_file", &incomplete.output_file)
                .with("lack", incomplete.lack)
                .with("why", &why)
                .with("violations", &incomplete.violations))
        }
        WaitOutcome::Stopped => Err(Fault::cancelled()),
    }
}

pub(super) const AGGREGATE_BATCH_RESULTS: Row = Row {
    name: "aggregate_batch_results",
    title: "Join the classified batches",
    about: "Joins the files `batch_*_classified.json` of a folder into one file `{\"elements\": […], \"count\": N}`. The stage that \
            makes the batches must be complete, and every element must have `global_id`, `ifc_type` and `material_primary`. Where a \
            stage makes `output_file`, that stage is run. Gives the number of elements, by type, not the elements.",
    reads: false,
    schemas: schemas_of::<Folder, Aggregated>,
    call: join,
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Folder {
    /// The folder that holds the files, relative to the workspace
    batch_dir: String,
    /// The file to make, relative to the workspace
    output_file: String,
}

fn join(call: &Call<'_>) -> Result<Value, Fault> {
    let wanted: Folder = call.arguments()?;
    let request = call.request(&wanted.output_file);
    let wanted = AggregateOptions {
        batch_dir: wanted.batch_dir,
        output_file: wanted.output_file,
    };
    let mut show = Show::new(call.teller);
    match aggregate(&request, &wanted, &mut show, call.stop)? {
        Aggregation::Done(joined) => answer(true, &joined, &format!("`{}`", joined.path)),
        Aggregation::MissingFields(lacking) => Err(Fault::new(
            "missing_fields",
            format!("{} elements lack fields that every element must have", lacking.count),
            "`elements` names them with their fields: correct the files that hold them; `count` says how many there are",
        )
        .with("elements", &lacking.elements)
        .with("count", lacking.count)),
        Aggregation::NotComplete(found) => Err(Fault::new(
            "not_complete",
            format!("stage `{}`, which makes these batches, is not complete", found.stage),
            format!("complete it by `run` with the target `{}`: `missing` says what is missing", found.stage),
        )
        .with("stage", &found.stage)
        .with("missing", sentences::missing(&found))),
        Aggregation::Untracked(files) => Err(Fault::new(
            "altered",
            "files among the batches were made by no stage",
            "remove the files that `files` names: what no stage made is not joined with what was checked",
        )
        .with("files", files)),
        Aggregation::Run(report) => Err(running::fault(&report)),
    }
}
