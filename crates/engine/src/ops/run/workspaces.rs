//! Runs a project over a list of workspaces, one after another.

use crate::ops::plan::{Plan, StagePlan, plan};
use crate::ops::project::error::OpsError;
use crate::ops::project::find::{declarations, find_project};
use crate::ops::project::request::Request;
use crate::ops::run::{
    Observer, Report, RunOptions, StageReport, StageStatus, StopFlag, Stopwatch,
};
use crate::ops::run::{exit_code, run};
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::redact;
use milepost_core::base::source::Source;
use milepost_core::expr::scope::{Format, Reading, parse};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::pipeline::{Manifest, Pipeline};
use milepost_core::plan::estimate::Basis;
use milepost_store::store::checkpoint;
use milepost_store::store::layout::Layout;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The default folder for workspaces of a list, in the project.
pub(crate) const FOLDER: &str = "workspaces";

/// A list of workspaces.
pub struct WorkspaceList {
    /// The workspaces, in order.
    pub all: Vec<WorkspaceEntry>,
    pipeline: Pipeline,
}

/// A workspace of the list, with its parameters.
pub struct WorkspaceEntry {
    /// The name of the workspace in the list.
    pub workspace: String,
    /// Its parameters in the list.
    pub(crate) params: Map<String, Value>,
    /// The path of the workspace.
    pub folder: PathBuf,
    set: Vec<String>,
}

/// The results of all workspaces.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct WorkspacesResult {
    /// True if nothing ran, or only what costs nothing.
    pub dry_run: bool,
    /// The workspaces, in order.
    pub entries: Vec<EntryResult>,
}

/// The result of a workspace.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct EntryResult {
    /// Its parameters in the list.
    pub(crate) params: Map<String, Value>,
    /// Its name in the list.
    pub workspace: String,
    /// The result in one word: `complete`, `reused` (up to date), `partial`, `held`, `failed`, `altered`, `interrupted`, `error` (the run
    /// could not begin), or `planned`.
    pub status: &'static str,
    /// The exit code of its run or plan.
    pub exit_code: u8,
    /// Why it failed.
    pub error: Option<EntryError>,
    /// Why it is `partial`, `held` or `interrupted`, or its verdict is no, in one line. A failed workspace has an `error` instead.
    pub reason: Option<String>,
    /// The stages that have a checkpoint, by name.
    pub(crate) stages: BTreeMap<String, StageSummary>,
    /// What agents would still be asked, if it was planned.
    pub estimate: Option<Estimate>,
    /// What agents used in this run.
    pub usage: AgentUsage,
    /// The duration in seconds.
    pub seconds: f64,
}

/// Why a workspace failed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct EntryError {
    /// The code of the error.
    pub code: String,
    /// The message.
    pub message: String,
}

/// A stage by its checkpoint.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct StageSummary {
    /// `complete` or `partial`.
    pub(crate) status: String,
    /// Its summary.
    pub(crate) summary: Option<Value>,
}

/// What agents would still be asked.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Expected calls, the first of each batch; `None` if they depend on outputs that are not built yet.
    pub calls: Option<u64>,
    /// The most calls, with every retry and iteration; `None` if there is no known bound.
    pub most_calls: Option<u64>,
    /// Expected tokens of input.
    pub(crate) input_tokens: u64,
    /// Expected tokens of answers.
    pub(crate) output_tokens: u64,
    /// Expected tokens of input and answers.
    pub(crate) tokens: u64,
    /// Expected cost in dollars; `None` without a known price, or if the calls are not known.
    pub cost_usd: Option<f64>,
}

/// What agents used.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct AgentUsage {
    /// Calls.
    pub(crate) calls: u64,
    /// Tokens, input and output.
    pub(crate) tokens: u64,
    /// The cost in dollars; `None` if the cost of a call is not known.
    pub(crate) cost_usd: Option<f64>,
    /// The known part of the cost, which counts towards a budget.
    #[serde(skip)]
    pub known: NanoUsd,
}

/// A file outside project and workspace.
struct Outside(PathBuf);

impl Source for Outside {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(&self.0)?))
    }
}

/// Reads a list of workspaces. They are folders in the workspace folder of the request, by default in `workspaces` of the project.
///
/// # Errors
/// When there is no project, its declarations are wrong, the list cannot be read, or an entry is wrong.
pub fn entries(request: &Request, file: &Path) -> Result<WorkspaceList, OpsError> {
    let project = find_project(&request.folder)?;
    let (pipeline, _) = declarations(&project)?;
    let shown = file.display();
    let wrong = |why: String| OpsError::Usage(format!("`--manifest {shown}`: {why}"));
    let reading = Reading::from(Format::of_path(&file.to_string_lossy()));
    let source = Outside(file.to_owned());
    let content =
        parse(&source.name(), &source, &reading).map_err(|error| wrong(error.to_string()))?;
    // A first line with data would be lost as a header.
    if reading.format == Format::Csv && content == Value::Array(Vec::new()) {
        let why = "the table has no rows: its first line names the columns";
        return Err(wrong(why.to_owned()));
    }
    let rows = match &pipeline.manifest.select {
        Some(select) => {
            let rows = select.all(content, &Map::new());
            rows.map_err(|error| wrong(error.to_string()))?
        }
        None => match content {
            Value::Array(rows) => rows,
            _ => {
                let help =
                    "expected a list: `select` under [manifest] in milepost.toml can select one";
                return Err(wrong(help.to_owned()));
            }
        },
    };
    let base = match &request.workspace {
        Some(folder) => request.folder.join(folder),
        None => project.join(FOLDER),
    };
    let beside = file.parent().unwrap_or(Path::new("")).to_owned();
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for (row, number) in rows.into_iter().zip(1..) {
        let entry = entry(&pipeline, &base, &beside, row);
        let entry = entry.map_err(|why| wrong(format!("entry {number}: {why}")))?;
        if !known.insert(entry.workspace.to_lowercase()) {
            let name = &entry.workspace;
            let why = format!("entry {number}: the workspace `{name}` is listed twice");
            return Err(wrong(why));
        }
        all.push(entry);
    }
    Ok(WorkspaceList { all, pipeline })
}

fn entry(
    pipeline: &Pipeline,
    base: &Path,
    beside: &Path,
    row: Value,
) -> Result<WorkspaceEntry, String> {
    const FORM: &str = "expected an object with `workspace`, the name of a folder, and parameters; \
                        `select` under [manifest] in milepost.toml can build one";
    let Value::Object(mut params) = row else {
        return Err(FORM.to_owned());
    };
    let workspace = match params.shift_remove("workspace") {
        Some(Value::String(name)) => name,
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err(FORM.to_owned()),
    };
    let place = RelPath::parse(&workspace).map_err(|error| error.to_string())?;
    let given = params.iter().filter(|(_, value)| !value.is_null());
    let mut set = Vec::new();
    for (name, value) in given {
        let param = pipeline.param(name);
        let file = param.and_then(|param| param.file.as_ref());
        let text = match value {
            // Paths are relative to the list.
            Value::String(text) if file.is_some_and(|file| file.base.is_none()) => {
                let near = beside.join(text);
                let near = near.is_file().then(|| near.display().to_string());
                near.unwrap_or_else(|| text.clone())
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let setting = format!("{name}={text}");
        // All entries are checked before the first runs, so that no wrong value is found after calls were paid.
        if let Some(param) = param.filter(|param| param.file.is_none()) {
            let parsed = param.parse(&text);
            parsed.map_err(|expected| format!("{setting}: {expected}"))?;
        }
        set.push(setting);
    }
    Ok(WorkspaceEntry {
        set,
        folder: base.join(place.as_str()),
        workspace,
        params,
    })
}

impl WorkspaceList {
    /// Runs or, with `dry`, plans one workspace. An error is part of the result and does not affect the others.
    pub fn one(
        &self,
        entry: &WorkspaceEntry,
        request: &Request,
        options: &RunOptions,
        dry: bool,
        observer: &mut dyn Observer,
        stop: &StopFlag,
    ) -> EntryResult {
        let watch = Stopwatch::start();
        let mut own = request.clone();
        own.workspace = Some(entry.folder.clone());
        own.values.set = entry
            .set
            .iter()
            .chain(&request.values.set)
            .cloned()
            .collect();
        let mut ended = EntryResult {
            params: entry.params.clone(),
            workspace: entry.workspace.clone(),
            status: "planned",
            exit_code: 0,
            error: None,
            reason: None,
            stages: BTreeMap::new(),
            estimate: None,
            usage: AgentUsage {
                cost_usd: Some(0.0),
                ..AgentUsage::default()
            },
            seconds: 0.0,
        };
        if stop.is_set() {
            ended.status = "interrupted";
            ended.exit_code = 130;
            ended.reason = Some(STOPPED.to_owned());
            return ended;
        }
        let ran = if dry {
            Ok(())
        } else {
            run(&own, options, observer, stop).map(|report| ended.ran(&report))
        };
        let planned = ran.and_then(|()| {
            if dry || options.until_paid && !stop.is_set() {
                let plan = plan(&own, options)?;
                ended.planned(&plan);
                if dry {
                    ended.hindered(&plan);
                }
            }
            Ok(())
        });
        if let Err(error) = planned {
            ended.status = "error";
            ended.exit_code = 1;
            let message = redact(&error.to_string()).into_owned();
            let code = "ERROR".to_owned();
            ended.error = Some(EntryError { code, message });
        }
        ended.stages = self.summaries(&Layout::new(&entry.folder));
        ended.seconds = watch.elapsed().as_secs_f64();
        ended
    }

    fn summaries(&self, layout: &Layout) -> BTreeMap<String, StageSummary> {
        let stages = self.pipeline.stages.iter();
        stages
            .filter_map(|stage| {
                let found = checkpoint::read(layout, stage.number).ok().flatten()?;
                let found = found.checkpoint;
                let status = serde_json::to_value(found.status).ok()?;
                let summary = StageSummary {
                    status: status.as_str().unwrap_or_default().to_owned(),
                    summary: found.summary,
                };
                (found.stage == stage.name).then(|| (stage.name.clone(), summary))
            })
            .collect()
    }

    /// Returns the result of the project's `summary` program for all results; without one, the results.
    ///
    /// # Errors
    /// When the program fails.
    pub fn summary(&self, batch: &WorkspacesResult) -> Result<Value, OpsError> {
        let world = |error: &dyn std::fmt::Display| OpsError::World(error.to_string());
        let value = serde_json::to_value(batch).map_err(|error| world(&error))?;
        let Manifest { summary, .. } = &self.pipeline.manifest;
        match summary {
            Some(program) => program
                .one(value, &Map::new())
                .map_err(|error| world(&error)),
            None => Ok(value),
        }
    }

    /// Returns true if the project declares a `summary` program.
    pub fn has_summary(&self) -> bool {
        self.pipeline.manifest.summary.is_some()
    }
}

impl EntryResult {
    fn ran(&mut self, report: &Report) {
        self.exit_code = exit_code(report);
        let worst = crate::run::report::worst(&report.stages);
        let is_idle = |stage: &StageReport| stage.ran == 0 && stage.judged == 0;
        self.status = match worst {
            _ if report.interrupted => "interrupted",
            None | Some(StageStatus::Complete) if report.stages.iter().all(is_idle) => "reused",
            None => "complete",
            Some(worst) => worst.word(),
        };
        let bad = |stage: &&StageReport| stage.failure || stage.status == StageStatus::Altered;
        let of_stage = |stage: &StageReport| {
            let name = &stage.stage;
            match stage.failed.first() {
                Some((batch, outcome)) => EntryError {
                    code: outcome.code.clone(),
                    message: match batch.as_str() {
                        "" => format!("{name}: {}", outcome.message),
                        batch => format!("{name}/{batch}: {}", outcome.message),
                    },
                },
                None => EntryError {
                    code: stage.status.word().to_uppercase(),
                    message: match &stage.why {
                        Some(why) => format!("{name}: {why}"),
                        None => format!("{name} is {}", stage.status.word()),
                    },
                },
            }
        };
        self.error = report.stages.iter().find(bad).map(of_stage);
        if self.error.is_none() {
            self.reason = reason(report);
        }
        let (mut cost, mut unpriced) = (NanoUsd::ZERO, 0);
        for stage in &report.stages {
            self.usage.calls += stage.spent.calls;
            self.usage.tokens += stage.spent.usage.total();
            cost = cost + stage.spent.cost;
            unpriced += stage.spent.unpriced;
        }
        self.usage.known = cost;
        self.usage.cost_usd = (unpriced == 0).then(|| cost.dollars());
    }

    /// Sets the exit code and error of a plan that would fail.
    fn hindered(&mut self, plan: &Plan) {
        for stage in &plan.stages {
            let missing = stage.missing.first();
            let code = missing.and_then(|missing| missing.code.as_deref());
            let missing = missing.map(|missing| &missing.why);
            let altered = stage.altered.first().map(|file| &file.path);
            let (exit_code, code, why) = match (altered, stage.problem.as_ref().or(missing)) {
                (Some(path), _) => (5, "ALTERED", format!("`{path}` was modified by hand")),
                (None, Some(why)) => (1, code.unwrap_or("INPUT"), why.clone()),
                (None, None) => continue,
            };
            if self.error.is_none() || exit_code == 5 && self.exit_code != 5 {
                self.exit_code = exit_code;
                let message = format!("{}: {why}", stage.stage);
                let code = code.to_owned();
                self.error = Some(EntryError { code, message });
            }
        }
    }

    fn planned(&mut self, plan: &Plan) {
        let mut sum = Estimate::default();
        let mut calls = Some(0);
        let mut cost = Some(NanoUsd::ZERO);
        let mut most = Some(0_u64);
        for asks in plan.stages.iter().flat_map(|stage| &stage.asks) {
            let is_known = asks.unknown == 0;
            calls = calls.filter(|_| is_known).map(|sum| sum + asks.calls);
            most = most
                .zip(asks.most_calls)
                .map(|(sum, one)| sum.saturating_add(one));
            sum.input_tokens += asks.input_tokens;
            sum.output_tokens += asks.output_tokens;
            let expected = asks.cost;
            let expected = expected.filter(|_| is_known || asks.basis == Basis::Declared);
            cost = cost.zip(expected).map(|(sum, one)| sum + one);
        }
        // Stages that may ask agents depending on earlier stages have no bound.
        let is_open = |stage: &StagePlan| stage.may_ask.is_some() || !stage.certain;
        sum.most_calls = most.filter(|_| !plan.stages.iter().any(is_open));
        sum.calls = calls;
        sum.tokens = sum.input_tokens + sum.output_tokens;
        sum.cost_usd = cost.map(NanoUsd::dollars);
        self.estimate = Some(sum);
    }
}

/// The reason of an interrupted workspace.
const STOPPED: &str = "the run was interrupted";

/// Returns why a run without failures is not complete, or its verdict is no.
fn reason(report: &Report) -> Option<String> {
    if report.interrupted {
        return Some(STOPPED.to_owned());
    }
    let of_stage = |stage: &StageReport| {
        let name = &stage.stage;
        if let Some(why) = &stage.held {
            return Some(format!("{name}: {why}"));
        }
        if let Some(awaits) = &stage.awaits {
            let agents = awaits.agents.join("`, `");
            return Some(format!("{name}: waiting for agent `{agents}`"));
        }
        if let Some((batch, outcome)) = stage.failed.first() {
            let batch = if batch.is_empty() {
                name.clone()
            } else {
                format!("{name}/{batch}")
            };
            let more = match stage.failed.len() {
                1 => String::new(),
                all => format!("; {} more failed", all - 1),
            };
            return Some(format!("{batch}: {outcome}{more}"));
        }
        (stage.verdict == Some(false)).then(|| format!("{name}: the verdict is no"))
    };
    report.stages.iter().find_map(of_stage)
}

/// Returns the exit code of the worst result.
pub fn worst_code(entries: &[EntryResult]) -> u8 {
    let codes: BTreeSet<u8> = entries.iter().map(|entry| entry.exit_code).collect();
    let order = [130, 5, 4, 2, 1, 3];
    order
        .into_iter()
        .find(|code| codes.contains(code))
        .unwrap_or(0)
}
