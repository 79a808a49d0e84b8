//! The results of the workspaces of a list.

use crate::ops::exit_code::{FAILED, MODIFIED, exit_code};
use crate::ops::plan::{Plan, StagePlan};
use crate::ops::run::{Report, StageReport, StageStatus};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::stage_word::StageWord;
use milepost_core::plan::estimate::Basis;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The state, as screens show it, if it is `held`.
    #[serde(skip)]
    pub held: Option<StageWord>,
    /// The exit code of its run or plan.
    pub exit_code: u8,
    /// Why it failed.
    pub error: Option<EntryError>,
    /// Why it is `partial`, `held` or `interrupted`, or its verdict is no, in one line. A failed workspace has an `error` instead.
    pub reason: Option<String>,
    /// The stages that have a checkpoint, by name.
    pub(crate) stages: BTreeMap<String, StageSummary>,
    /// The calls to agents that are still needed, if it was planned.
    pub estimate: Option<Estimate>,
    /// The usage of agents in this run.
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

/// The calls to agents that are still needed.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Expected calls, the first of each batch; `None` if they depend on outputs that are not built yet.
    pub calls: Option<u64>,
    /// Maximum number of calls, with every retry and iteration; `None` if there is no known bound.
    pub most_calls: Option<u64>,
    /// Expected tokens of input.
    pub(crate) input_tokens: u64,
    /// Expected tokens of answers.
    pub(crate) output_tokens: u64,
    /// Expected tokens of input and answers.
    pub(crate) tokens: u64,
    /// Expected cost in dollars; `None` without a known price, or if the calls are not known.
    pub cost_usd: Option<f64>,
    /// Expected cost in dollars if all iterations of `[refine]` are needed; `None` as for `cost_usd`.
    pub most_cost_usd: Option<f64>,
}

/// The usage of agents.
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

impl WorkspacesResult {
    /// Returns the sum of the estimates; `None` if nothing was planned. A part that is not known for one workspace is not known.
    pub fn total(&self) -> Option<Estimate> {
        let estimates = self
            .entries
            .iter()
            .filter_map(|entry| entry.estimate.as_ref());
        estimates.cloned().reduce(|sum, one| {
            let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
            let cost = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
            Estimate {
                calls: add(sum.calls, one.calls),
                most_calls: add(sum.most_calls, one.most_calls),
                input_tokens: sum.input_tokens + one.input_tokens,
                output_tokens: sum.output_tokens + one.output_tokens,
                tokens: sum.tokens + one.tokens,
                cost_usd: cost(sum.cost_usd, one.cost_usd),
                most_cost_usd: cost(sum.most_cost_usd, one.most_cost_usd),
            }
        })
    }
}

impl EntryResult {
    pub(super) fn ran(&mut self, report: &Report) {
        self.exit_code = exit_code(report);
        let worst = crate::run::report::worst(&report.stages);
        let is_idle = |stage: &StageReport| stage.ran == 0 && stage.judged + stage.restored == 0;
        self.status = match worst {
            _ if report.interrupted => "interrupted",
            None | Some(StageStatus::Complete) if report.stages.iter().all(is_idle) => "reused",
            None => "complete",
            Some(worst) => worst.word(),
        };
        self.held = (self.status == "held").then(|| report.unfinished());
        let bad = |stage: &&StageReport| stage.failure || stage.status == StageStatus::Modified;
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
                        None => format!("{name} is {}", stage.word().text()),
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
    pub(super) fn hindered(&mut self, plan: &Plan) {
        for stage in &plan.stages {
            let missing = stage.missing.first();
            let code = missing.and_then(|missing| missing.code.as_deref());
            let missing = missing.map(|missing| &missing.why);
            let altered = stage.altered.first().map(|file| &file.path);
            let (exit_code, code, why) = match (altered, stage.problem.as_ref().or(missing)) {
                (Some(path), _) => (
                    MODIFIED,
                    "ALTERED",
                    format!("`{path}` was modified by hand"),
                ),
                (None, Some(why)) => (FAILED, code.unwrap_or("INPUT"), why.clone()),
                (None, None) => continue,
            };
            if self.error.is_none() || exit_code == MODIFIED && self.exit_code != MODIFIED {
                self.exit_code = exit_code;
                let message = format!("{}: {why}", stage.stage);
                let code = code.to_owned();
                self.error = Some(EntryError { code, message });
            }
        }
    }

    pub(super) fn planned(&mut self, plan: &Plan) {
        let mut sum = Estimate::default();
        let mut calls = Some(0);
        let mut cost = Some(NanoUsd::ZERO);
        let mut most_cost = Some(NanoUsd::ZERO);
        let mut most = Some(0_u64);
        let asked = plan.stages.iter();
        for asks in asked.flat_map(|stage| stage.asks.iter().chain(&stage.unpaid_ask)) {
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
            let dearest = expected.map(|expected| asks.most_cost.unwrap_or(expected));
            most_cost = most_cost.zip(dearest).map(|(sum, one)| sum + one);
        }
        if plan.stages.iter().any(|stage| stage.asks_more) {
            (calls, cost, most_cost) = (None, None, None);
        }
        // Stages that may ask agents depending on earlier stages have no bound.
        let is_open = |stage: &StagePlan| stage.may_ask.is_some() || !stage.certain;
        sum.most_calls = most.filter(|_| !plan.stages.iter().any(is_open));
        sum.calls = calls;
        sum.tokens = sum.input_tokens + sum.output_tokens;
        sum.cost_usd = cost.map(NanoUsd::dollars);
        sum.most_cost_usd = most_cost.map(NanoUsd::dollars);
        self.estimate = Some(sum);
    }
}

/// The reason of an interrupted workspace.
pub(super) const STOPPED: &str = "the run was interrupted";

/// Returns why a run without failures is not complete, or its verdict is no.
fn reason(report: &Report) -> Option<String> {
    if report.interrupted {
        return Some(STOPPED.to_owned());
    }
    let of_stage = |stage: &StageReport| {
        let name = &stage.stage;
        if let Some(why) = stage.reason() {
            return Some(format!("{name}: {why}"));
        }
        if let Some(approval) = &stage.approval {
            return Some(format!("{name}: waiting for approval by {}", approval.by));
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
    let order = [130, 5, 4, 2, 1, 6, 3];
    order
        .into_iter()
        .find(|code| codes.contains(code))
        .unwrap_or(0)
}
