//! Tools that only read: `plan`, `status`, `why`, `trace`, `log` and `verify`.

use super::entry::{ToolCall, ToolEntry, schemas_of};
use super::run::RunArguments;
use crate::mcp::call::{Call, done};
use crate::mcp::tool_error::ToolError;
use milepost_core::model::event::Record;
use milepost_core::plan::options::flags::Flags as _;
use milepost_engine::ops;
use milepost_engine::ops::inspect::log::{Log, LogOptions, Printed};
use milepost_engine::ops::inspect::status::Status;
use milepost_engine::ops::inspect::verify::Verified;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::trace::{Trace, TraceOptions};
use milepost_engine::ops::why::Why;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) const PLAN: ToolEntry = ToolEntry {
    name: "plan",
    title: "Plan a run",
    about: "Shows what `run` with the same arguments would do: the batches that would run with their reasons, the number of batches \
            that are up to date, and the calls of agents with their cost. Writes nothing.",
    reads: true,
    schemas: schemas_of::<RunArguments, Plan>,
    call: ToolCall::Once(|call| {
        let RunArguments { options, values } = call.arguments()?;
        let mut request = call.request_as("");
        request.values.merge(&values);
        done(
            &ops::plan::plan(&request, &options)?,
            &whole(call, &["plan", "--json"]),
        )
    }),
};

/// Returns the command that prints the complete data.
fn whole(call: &Call, words: &[&str]) -> String {
    format!("`{}`", call.request.invocation.line(words))
}

pub(super) const STATUS: ToolEntry = ToolEntry {
    name: "status",
    title: "Show the state of each stage",
    about: "Shows the state of each stage, the run in progress, the cost of agents so far, and what is left of the limits. Writes \
            nothing; safe while a run is in progress.",
    reads: true,
    schemas: schemas_of::<NoArguments, Status>,
    call: ToolCall::Once(|call| {
        let NoArguments {} = call.arguments()?;
        let status = ops::inspect::status::status(&call.request)?;
        done(&status, &whole(call, &["status", "--json"]))
    }),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct NoArguments {}

pub(super) const WHY: ToolEntry = ToolEntry {
    name: "why",
    title: "Explain a stage, a batch or a file",
    about: "Explains why a stage or a batch is out of date or up to date, or where a file of the workspace came from. Writes nothing.",
    reads: true,
    schemas: schemas_of::<WhyArguments, Why>,
    call: ToolCall::Once(|call| {
        let arguments: WhyArguments = call.arguments()?;
        let why = ops::why::why(&call.request, &arguments.what)?;
        done(&why, &whole(call, &["why", &arguments.what, "--json"]))
    }),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WhyArguments {
    /// Stage (`classify`), batch (`classify/batch_3`), or file of the workspace
    what: String,
}

pub(super) const TRACE: ToolEntry = ToolEntry {
    name: "trace",
    title: "Follow a value back to the input",
    about: "Follows an element, a cell, a value or a file back to the input: each file with its digest, corrections by hand, batches, \
            prompts and answers of agents, and the line of the input. Writes nothing.",
    reads: true,
    schemas: schemas_of::<TraceArguments, Trace>,
    call: ToolCall::Once(|call| {
        let TraceArguments {
            what,
            cell,
            pointer,
            element,
            field,
        } = call.arguments()?;
        let options = TraceOptions {
            what,
            cell,
            pointer,
            element,
            field,
            confined: true,
        };
        let traced = ops::trace::trace(&call.request, &options)?;
        done(&traced, &whole(call, &["trace", &options.what, "--json"]))
    }),
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct TraceArguments {
    /// Key of an element, or file of the workspace
    what: String,
    /// Cell of the workbook, such as `Elements!G12`
    #[serde(default)]
    cell: Option<String>,
    /// JSON pointer of a value in the file
    #[serde(default)]
    pointer: Option<String>,
    /// Key of an element in the file
    #[serde(default)]
    element: Option<String>,
    /// Field of the element to show at each station
    #[serde(default)]
    field: Option<String>,
}

pub(super) const LOG: ToolEntry = ToolEntry {
    name: "log",
    title: "Show past events",
    about: "Returns the latest records of the journal: all, or those of a stage or a batch. For a batch, it also returns what its \
            programs printed. Writes nothing.",
    reads: true,
    schemas: schemas_of::<LogArguments, LogResult>,
    call: ToolCall::Once(log),
};

#[derive(Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct LogArguments {
    /// Stage (`classify`) or batch (`classify/batch_3`) [default: all]
    target: Option<String>,
    /// Return only records of this run, by its id or the start of it
    run: Option<String>,
    /// Return only errors
    errors: bool,
    /// Return at most this many records, up to 20
    #[cfg_attr(debug_assertions, schemars(range(min = 1, max = 20)))]
    last: Option<usize>,
}

/// Records of the journal, oldest first.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct LogResult {
    /// The records, shortened.
    records: Vec<LogRecord>,
    /// Earlier records that were left out.
    left_out: u64,
    /// Output of the programs of the batch.
    printed: Vec<Printed>,
    /// Where the journal is damaged.
    broken: Option<String>,
}

/// A shortened record of the journal.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct LogRecord {
    /// Time in UTC.
    timestamp: String,
    /// The run that wrote it.
    run_id: String,
    /// Who did it.
    agent_name: String,
    /// Coarse kind.
    event_type: String,
    /// Precise kind.
    kind: String,
    /// Summary for people, in one line.
    summary: String,
    /// Files that the record is about.
    artifact_refs: Vec<String>,
}

/// The most records that `log` returns.
const RECORDS: usize = 20;

fn log(call: &Call) -> Result<Value, ToolError> {
    let arguments: LogArguments = call.arguments()?;
    let last = arguments.last.unwrap_or(RECORDS).clamp(1, RECORDS);
    let options = LogOptions {
        target: arguments.target,
        run: arguments.run,
        errors: arguments.errors,
        calls: false,
        limit: Some(last),
        unchecked: false,
    };
    let Log {
        records,
        left_out,
        printed,
        broken,
        ..
    } = ops::inspect::log::log(&call.request, &options)?;
    let lines = LogResult {
        records: records.iter().map(line).collect(),
        left_out,
        printed,
        broken,
    };
    let target = options.target.as_deref().unwrap_or_default();
    let words = ["log", target, "--last", "0", "--json"];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    done(&lines, &whole(call, &words))
}

fn line(record: &Record) -> LogRecord {
    let whole = json!(record);
    let text = |name: &str| whole[name].as_str().unwrap_or_default().to_owned();
    LogRecord {
        timestamp: text("timestamp"),
        run_id: record.run_id.clone(),
        agent_name: record.agent_name.clone(),
        event_type: text("event_type"),
        kind: text("kind"),
        summary: record.summary.clone(),
        artifact_refs: record.artifact_refs.clone(),
    }
}

pub(super) const VERIFY: ToolEntry = ToolEntry {
    name: "verify",
    title: "Verify the workspace",
    about: "Compares outputs, checkpoints, manifests and journal with the record. With `deep`, it also validates all outputs again. \
            If everything matches, `findings` is empty or contains only notes. Writes nothing.",
    reads: true,
    schemas: schemas_of::<VerifyArguments, VerifyResult>,
    call: ToolCall::Once(|call| {
        let arguments: VerifyArguments = call.arguments()?;
        let verified = ops::inspect::verify::verify(&call.request, arguments.deep)?;
        let result = VerifyResult {
            ok: verified.exit_code() == 0,
            verified,
        };
        done(&result, &whole(call, &["verify", "--json"]))
    }),
};

#[derive(Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct VerifyArguments {
    /// Validate all outputs again by their schemas, checks and conservation
    deep: bool,
}

#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct VerifyResult {
    /// True if nothing is modified or invalid.
    ok: bool,
    #[serde(flatten)]
    verified: Verified,
}
