//! Tools that only read: what a run would do, how far it is, why, what happened, and whether all is as recorded.

use super::super::call::{Call, done};
use super::super::fault::Fault;
use super::running::RunArguments;
use super::{Row, schemas_of};
use milepost_core::model::event::Record;
use milepost_engine::ops;
use milepost_engine::ops::inspect::log::{Log, LogOptions, Printed};
use milepost_engine::ops::inspect::status::Status;
use milepost_engine::ops::inspect::verify::Verified;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::why::Why;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) const PLAN: Row = Row {
    name: "plan",
    title: "What would a run do?",
    about: "Says what `run` with the same arguments would do, and why: batches that run with their reasons, batches that are reused, \
            and what agents would be asked and cost. Writes nothing.",
    reads: true,
    schemas: schemas_of::<RunArguments, Plan>,
    call: |call| {
        let RunArguments { options, values } = call.arguments()?;
        let mut request = call.request("");
        request.values.extend(values);
        done(
            &ops::plan::plan(&request, &options)?,
            "`milepost plan --json`",
        )
    },
};

pub(super) const STATUS: Row = Row {
    name: "status",
    title: "How far is it?",
    about: "Says how far each stage is, who runs at this moment, what agents cost so far and what of the limits is left. Writes \
            nothing, and disturbs no run.",
    reads: true,
    schemas: schemas_of::<Nothing, Status>,
    call: |call| {
        let Nothing {} = call.arguments()?;
        let status = ops::inspect::status::status(&call.desk.request)?;
        done(&status, "`milepost status --json`")
    },
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub(super) const WHY: Row = Row {
    name: "why",
    title: "Why is it so?",
    about: "Says why a stage or a batch would run or is reused, or where a file of the workspace came from. Writes nothing.",
    reads: true,
    schemas: schemas_of::<What, Why>,
    call: |call| {
        let wanted: What = call.arguments()?;
        let why = ops::why::why(&call.desk.request, &wanted.what)?;
        done(&why, &format!("`milepost why {} --json`", wanted.what))
    },
};

#[derive(Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct What {
    /// STAGE, STAGE/BATCH, or a file of the workspace
    what: String,
}

pub(super) const LOG: Row = Row {
    name: "log",
    title: "What happened?",
    about: "Gives the last records of the journal, of all or of a stage or batch; of a batch also what its programs printed. Writes \
            nothing.",
    reads: true,
    schemas: schemas_of::<Which, Lines>,
    call: log,
};

#[derive(Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct Which {
    /// STAGE or STAGE/BATCH; none: all
    target: Option<String>,
    /// Only of this run: its id, or how that begins
    run: Option<String>,
    /// Only errors
    errors: bool,
    /// At most so many records; 20 at most
    #[cfg_attr(debug_assertions, schemars(range(min = 1, max = 20)))]
    last: Option<usize>,
}

/// What happened, the oldest first.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct Lines {
    /// The records, each in short.
    records: Vec<Line>,
    /// Earlier records that were left out.
    left_out: u64,
    /// What programs of the batch printed, and what is known of its failures.
    printed: Vec<Printed>,
    /// The end of the journal that is broken there.
    broken: Option<String>,
}

/// A record of the journal in short.
#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct Line {
    /// When, in UTC.
    timestamp: String,
    /// The run that wrote it.
    run_id: String,
    /// Who acted.
    agent_name: String,
    /// The coarse kind.
    event_type: String,
    /// The precise kind.
    kind: String,
    /// One line for people.
    summary: String,
    /// Files that it is about.
    artifact_refs: Vec<String>,
}

/// The most records that are given.
const RECORDS: usize = 20;

fn log(call: &Call<'_>) -> Result<Value, Fault> {
    let which: Which = call.arguments()?;
    let last = which.last.unwrap_or(RECORDS).clamp(1, RECORDS);
    let wanted = LogOptions {
        target: which.target,
        run: which.run,
        errors: which.errors,
        calls: false,
        limit: Some(last),
    };
    let Log {
        records,
        left_out,
        printed,
        broken,
        ..
    } = ops::inspect::log::log(&call.desk.request, &wanted)?;
    let lines = Lines {
        records: records.iter().map(line).collect(),
        left_out,
        printed,
        broken,
    };
    let target = wanted.target.as_deref().unwrap_or_default();
    done(&lines, &format!("`milepost log {target} --last 0 --json`"))
}

fn line(record: &Record) -> Line {
    let whole = json!(record);
    let text = |name: &str| whole[name].as_str().unwrap_or_default().to_owned();
    Line {
        timestamp: text("timestamp"),
        run_id: record.run_id.clone(),
        agent_name: record.agent_name.clone(),
        event_type: text("event_type"),
        kind: text("kind"),
        summary: record.summary.clone(),
        artifact_refs: record.artifact_refs.clone(),
    }
}

pub(super) const VERIFY: Row = Row {
    name: "verify",
    title: "Is all as recorded?",
    about: "Compares every recorded file, checkpoint and manifest and the whole journal with what is there; with `deep` judges all \
            outputs again. `findings` is empty, or holds notes only, when all is as recorded. Writes nothing.",
    reads: true,
    schemas: schemas_of::<Depth, Audit>,
    call: |call| {
        let depth: Depth = call.arguments()?;
        let verified = ops::inspect::verify::verify(&call.desk.request, depth.deep)?;
        let audit = Audit {
            ok: verified.exit_code() == 0,
            verified,
        };
        done(&audit, "`milepost verify --json`")
    },
};

#[derive(Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct Depth {
    /// Judge all outputs again, by their schemas, checks and conservation
    deep: bool,
}

#[derive(Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
struct Audit {
    /// Whether nothing is altered or invalid.
    ok: bool,
    #[serde(flatten)]
    verified: Verified,
}
