//! The tool that runs stages.

use super::super::call::answer;
use super::super::fault::Fault;
use super::super::progress::Show;
use super::{Row, schemas_of};
use crate::view::report::overall;
use milepost_engine::ops::run::result::RunResult;
use milepost_engine::ops::run::{Report, RunOptions, StageReport, StageStatus, Values, run};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

pub(super) const RUN: Row = Row {
    name: "run",
    title: "Run stages",
    about: "Runs what is not done or no longer true: all stages, or the targets. A stage whose predecessor is not complete refuses, \
            and says what is missing. Progress: one notification for each stage that begins and each batch that is over. Cancelling \
            the call stops the run; what is finished stays, and the next run goes on.",
    reads: false,
    schemas: schemas_of::<RunArguments, RunResult>,
    call: |call| {
        let RunArguments { options, values } = call.arguments()?;
        let mut request = call.request(&options.targets.join(" "));
        request.values.extend(values);
        let mut show = Show::new(call.teller);
        let report = run(&request, &options, &mut show, call.stop)?;
        told(&report)
    },
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

/// A run that ended: complete or held as it was asked for; else a fault.
fn told(report: &Report) -> Result<Value, Fault> {
    let status = overall(report);
    match status {
        "complete" => answer(true, &RunResult::of(report, status), WHOLE),
        "held" if refused(report).is_none() => answer(false, &RunResult::of(report, status), WHOLE),
        _ => Err(fault(report)),
    }
}

const WHOLE: &str = "`milepost status --json`, `milepost log`";

/// The stage that refused to begin, when nothing that was asked for could be done before it.
fn refused(report: &Report) -> Option<&StageReport> {
    let is_done = |stage: &&StageReport| stage.status == StageStatus::Complete;
    let first = report.stages.iter().find(|stage| !is_done(stage))?;
    (first.status == StageStatus::Blocked).then_some(first)
}

/// A run that did not get where it was asked to.
pub(super) fn fault(report: &Report) -> Fault {
    let status = overall(report);
    let ended = RunResult::of(report, status);
    let name = |stage: Option<&StageReport>| {
        stage.map_or_else(
            || "a stage".to_owned(),
            |stage| format!("stage `{}`", stage.stage),
        )
    };
    let of = |status: StageStatus| report.stages.iter().find(|stage| stage.status == status);
    let fault = if report.interrupted {
        Fault::cancelled()
    } else if let Some(stage) = refused(report) {
        let why = stage
            .why
            .as_deref()
            .unwrap_or("an earlier stage is not complete");
        let obstacle = stage.blocked_by.as_ref();
        let before = obstacle.map_or("the earlier stage", |obstacle| obstacle.stage.as_str());
        let hint =
            format!("run `{before}` first, or without targets: then all stages run in their order");
        Fault::new(
            "not_complete",
            format!("{} did not begin: {why}", name(Some(stage))),
            hint,
        )
        .with("blocked_by", obstacle)
    } else {
        match status {
            "altered" => Fault::new(
                "altered",
                format!(
                    "somebody altered files that {} made; nothing was run",
                    name(of(StageStatus::Altered))
                ),
                "a person decides: `milepost accept STAGE --why TEXT` keeps them; `run` with `force` makes them again",
            ),
            "partial" => Fault::new(
                "partial",
                format!(
                    "{} is partial: `stages` names what failed",
                    name(of(StageStatus::Partial))
                ),
                "`log` with the target STAGE/BATCH says why; `run` with `failed` tries again",
            ),
            "the verdict is no" => Fault::new(
                "verdict",
                format!(
                    "the verdict of {} is no",
                    name(
                        report
                            .stages
                            .iter()
                            .find(|stage| stage.verdict == Some(false))
                    )
                ),
                "`why` with the stage says what it judged",
            ),
            _ => Fault::new(
                "failed",
                format!(
                    "{} failed: `stages` names the batches, each with its outcome",
                    name(report.stages.iter().find(|stage| stage.failure))
                ),
                "`log` with the target STAGE/BATCH says why; `run` tries again and goes on with the rest",
            ),
        }
    };
    let ended = super::super::call::answer(false, &ended, WHOLE).unwrap_or_default();
    let mut fault = fault;
    if let Value::Object(fields) = ended {
        for (name, value) in fields {
            fault.more.entry(name).or_insert(value);
        }
    }
    fault.more.shift_remove("success");
    if fault.code == "cancelled" {
        fault.more.insert("interrupted".to_owned(), json!(true));
    }
    fault
}
