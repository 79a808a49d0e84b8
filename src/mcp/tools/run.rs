//! The tool that runs stages.

use super::entry::{ToolCall, ToolEntry, schemas_of};
use crate::mcp::call::answer;
use crate::mcp::progress::RunProgress;
use crate::mcp::tool_error::ToolError;
use crate::view::external::modified;
use crate::view::run::summary::overall;
use milepost_core::plan::options::flags::Flags as _;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::run::result::RunResult;
use milepost_engine::ops::run::{Report, RunOptions, StageReport, StageStatus, Values, run};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

pub(super) const RUN: ToolEntry = ToolEntry {
    name: "run",
    title: "Run stages",
    about: "Runs every stage that is out of date, or the targets. A stage does not start unless the stage before it is complete; the error names what is missing. The client is notified when a stage starts and when a batch ends. Cancelling the call stops \
            the run: finished batches stay, and the next run continues.",
    reads: false,
    schemas: schemas_of::<RunArguments, RunResult>,
    call: ToolCall::Once(|call| {
        let RunArguments { options, values } = call.arguments()?;
        let mut request = call.request_as(&options.targets.join(" "));
        request.values.merge(&values);
        let mut show = RunProgress::new(&call.progress);
        let report = run(&request, &options, &mut show, call.stop())?;
        result(&report, &request.invocation)
    }),
};

/// The arguments of `run`, and of `plan`.
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(super) struct RunArguments {
    #[cfg_attr(debug_assertions, serde(flatten))]
    pub(super) options: RunOptions,
    #[cfg_attr(debug_assertions, serde(flatten))]
    pub(super) values: Values,
}

impl<'de> Deserialize<'de> for RunArguments {
    /// Reads both parts by hand: with `serde(flatten)`, the error about an unknown argument would not list the known ones.
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let mut options: Map<String, Value> = Map::deserialize(reader)?;
        let names = ["set", "unset", "agents"];
        let values = names
            .iter()
            .filter_map(|name| options.shift_remove_entry(*name));
        let values = Value::Object(values.collect());
        let values = serde_json::from_value(values).map_err(D::Error::custom)?;
        let options = serde_json::from_value(Value::Object(options)).map_err(|error| {
            let error = error.to_string();
            let is_list = error.contains("expected one of");
            let more = names.iter().filter(|_| is_list);
            let more: String = more.map(|name| format!(", `{name}`")).collect();
            D::Error::custom(error + &more)
        })?;
        Ok(Self { options, values })
    }
}

/// Returns the report of a run that is complete, or that waits as the client requested; otherwise the error.
fn result(report: &Report, invocation: &Invocation) -> Result<Value, ToolError> {
    let status = overall(report);
    let whole = whole(invocation);
    match status {
        "complete" => answer(true, &RunResult::of(report, status), &whole),
        "held" if refused(report).is_none() => {
            answer(false, &RunResult::of(report, status), &whole)
        }
        _ => Err(run_error(report, invocation)),
    }
}

/// Returns the commands that print all of a report.
fn whole(invocation: &Invocation) -> String {
    let line = |words: &[&str]| invocation.line(words);
    format!("`{}`, `{}`", line(&["status", "--json"]), line(&["log"]))
}

/// Returns the stage that could not start, if no earlier stage is incomplete.
fn refused(report: &Report) -> Option<&StageReport> {
    let is_done = |stage: &&StageReport| stage.status == StageStatus::Complete;
    let first = report.stages.iter().find(|stage| !is_done(stage))?;
    (first.status == StageStatus::Blocked).then_some(first)
}

/// Returns the error of a run that did not complete.
pub(super) fn run_error(report: &Report, invocation: &Invocation) -> ToolError {
    let status = overall(report);
    let ended = RunResult::of(report, status);
    let name = |stage: Option<&StageReport>| {
        stage.map_or_else(
            || "a stage".to_owned(),
            |stage| format!("stage `{}`", stage.stage),
        )
    };
    let mut failed = report.stages.iter().flat_map(|stage| &stage.failed);
    let is_sent = failed.any(|(_, outcome)| outcome.accepted.is_some());
    let hint = |again: &str| {
        let again = if is_sent {
            "`run` with `failed` sends requests again that a service has accepted: only if it did not carry them out"
        } else {
            again
        };
        format!("`log` with the target STAGE/BATCH shows why; {again}")
    };
    let of = |status: StageStatus| report.stages.iter().find(|stage| stage.status == status);
    let mut error = if report.interrupted {
        ToolError::cancelled()
    } else if let Some(stage) = refused(report) {
        let why = stage
            .why
            .as_deref()
            .unwrap_or("an earlier stage is not complete");
        let blocker = stage.blocked_by.as_ref();
        let before = blocker.map_or("the earlier stage", |blocker| blocker.stage.as_str());
        let hint =
            format!("run `{before}` first, or run without targets, which runs all stages in order");
        ToolError::new(
            "not_complete",
            format!("{} did not start: {why}", name(Some(stage))),
            hint,
        )
        .with("blocked_by", blocker)
    } else {
        match status {
            "altered" => ToolError::new(
                "altered",
                format!(
                    "outputs of {} were modified by hand; nothing was run",
                    name(of(StageStatus::Modified))
                ),
                of(StageStatus::Modified)
                    .map(|stage| modified(&stage.stage, invocation))
                    .unwrap_or_default(),
            ),
            "partial" => ToolError::new(
                "partial",
                format!(
                    "{} is partial: `stages` lists the failed batches",
                    name(of(StageStatus::Partial))
                ),
                hint("`run` with `failed` reruns the failed batches"),
            ),
            "the verdict is no" => ToolError::new(
                "verdict",
                format!(
                    "{} has a negative verdict",
                    name(
                        report
                            .stages
                            .iter()
                            .find(|stage| stage.verdict == Some(false))
                    )
                ),
                "`why` with the stage shows what it checked",
            ),
            _ => ToolError::new(
                "failed",
                format!(
                    "{} failed: `stages` lists the batches with their outcomes",
                    name(report.stages.iter().find(|stage| stage.failure))
                ),
                hint("`run` reruns the failed batches and continues"),
            ),
        }
    };
    let ended = crate::mcp::call::answer(false, &ended, &whole(invocation)).unwrap_or_default();
    if let Value::Object(fields) = ended {
        for (name, value) in fields {
            error.more.entry(name).or_insert(value);
        }
    }
    error.more.shift_remove("success");
    if error.code == "cancelled" {
        error.more.insert("interrupted".to_owned(), json!(true));
    }
    error
}
