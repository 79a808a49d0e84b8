//! The calls of a workspace as a table: filtered, in pages, with sums by agent and by day, and what is left of the limits.

use crate::ops::inspect::calls::{CallSummary, Exchange, Spending, exchanges, spending_of};
use crate::ops::inspect::live::Live;
use crate::ops::project::error::OpsError;
use jiff::Timestamp;
use milepost_core::model::batched::CallId;
use milepost_core::model::call::Spent;
use milepost_store::store::calls::CallRecord;
use milepost_store::store::named_calls::read_calls;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The calls of a page.
const PAGE: usize = 100;

/// Which calls to return.
#[derive(Debug, Clone, Default)]
pub struct CallQuery {
    /// The stage.
    pub stage: Option<String>,
    /// The batch.
    pub batch: Option<String>,
    /// The agent that was asked.
    pub agent: Option<String>,
    /// The outcome, such as `answered`.
    pub outcome: Option<String>,
    /// The day in UTC, such as `2026-11-21`.
    pub day: Option<String>,
    /// The page, from 1. A page after the last one is the last one.
    pub page: u64,
}

/// A page of the calls of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallPage {
    /// The calls of the page, the newest first.
    pub rows: Vec<CallSummary>,
    /// The number of calls that the query selects.
    pub matching: u64,
    /// The page, from 1.
    pub page: u64,
    /// The number of pages, at least 1.
    pub pages: u64,
    /// The cost of the selected calls.
    pub spent: Spent,
    /// The number of selected calls without an answer.
    pub unanswered: u64,
    /// The selected calls by agent.
    pub agents: BTreeMap<String, Spent>,
    /// The selected calls by day in UTC.
    pub days: BTreeMap<String, Spent>,
    /// The stages, agents, outcomes and days of all calls.
    pub choices: CallChoices,
    /// What the workspace spent, and what is left of its limits; `None` if no agent was called and no limit is declared.
    pub spending: Option<Spending>,
}

/// The values by which calls can be filtered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallChoices {
    /// Stages.
    pub stages: BTreeSet<String>,
    /// Agents.
    pub agents: BTreeSet<String>,
    /// Outcomes.
    pub outcomes: BTreeSet<String>,
    /// Days in UTC.
    pub days: BTreeSet<String>,
}

impl Live {
    /// Returns a page of the calls of the workspace.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn calls(&self, query: &CallQuery) -> Result<CallPage, OpsError> {
        let (opened, is_running) =
            self.with_state(|opened, _, is_running| (opened.clone(), is_running))?;
        let folder = opened.workspace.layout.calls();
        let known = self.call_cache().read(&folder, is_running);
        let known = known.map_err(OpsError::unreadable(&folder.display()))?;
        let mut page = page_of(&known.calls, query);
        let stages = known.stages.values();
        page.spending = spending_of(&opened, stages, known.unreadable.clone());
        Ok(page)
    }

    /// Returns a call with its prompt and its answer.
    ///
    /// # Errors
    /// When there is no such call, the declarations are wrong, or the workspace cannot be read.
    pub fn call(&self, run: &str, number: u64) -> Result<Exchange, OpsError> {
        let opened = self.with_state(|opened, _, _| opened.clone())?;
        let folder = opened.workspace.layout.calls();
        let shown = folder.display();
        let known = self
            .call_cache()
            .read(&folder, false)
            .map_err(OpsError::unreadable(&shown))?;
        let mut calls = known.calls.iter();
        let found = calls.find(|call| call.run == run && call.number == number);
        let Some(found) = found else {
            return Err(OpsError::Usage(format!(
                "there is no call {number} of a run `{run}`"
            )));
        };
        let id = CallId {
            run: run.to_owned(),
            number,
        };
        let with_text = read_calls(&folder, &BTreeSet::from([id]));
        let with_text = with_text.map_err(OpsError::unreadable(&shown))?;
        let call = with_text.into_values().next();
        let call = call.unwrap_or_else(|| found.clone());
        let mut exchanges = exchanges(&opened, vec![call]);
        let missing = || OpsError::World(format!("the call {run}:{number} cannot be read"));
        exchanges.pop().ok_or_else(missing)
    }
}

fn page_of(calls: &[CallRecord], query: &CallQuery) -> CallPage {
    let mut choices = CallChoices::default();
    let (mut spent, mut unanswered) = (Spent::default(), 0);
    let mut agents: BTreeMap<String, Spent> = BTreeMap::new();
    let mut days: BTreeMap<String, Spent> = BTreeMap::new();
    let mut found: Vec<&CallRecord> = Vec::new();
    let is =
        |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
    for call in calls {
        let sent = &call.sent;
        let (outcome, day) = (outcome(call), day(call.when));
        add(&mut choices.stages, &sent.stage);
        add(&mut choices.agents, &sent.agent);
        add(&mut choices.outcomes, outcome);
        add(&mut choices.days, &day);
        let is_selected = is(&query.stage, &sent.stage)
            && is(&query.batch, &sent.batch)
            && is(&query.agent, &sent.agent)
            && is(&query.outcome, outcome)
            && is(&query.day, &day);
        if !is_selected {
            continue;
        }
        let one = Spent::of(sent, call.heard.as_ref());
        spent += one;
        unanswered += u64::from(outcome != "answered");
        *agents.entry(sent.agent.clone()).or_default() += one;
        *days.entry(day).or_default() += one;
        found.push(call);
    }
    let pages = found.len().div_ceil(PAGE).max(1);
    let page = usize::try_from(query.page)
        .unwrap_or(usize::MAX)
        .clamp(1, pages);
    let rows = found.iter().skip((page - 1) * PAGE).take(PAGE);
    CallPage {
        rows: rows.map(|call| CallSummary::of((*call).clone())).collect(),
        matching: found.len() as u64,
        page: page as u64,
        pages: pages as u64,
        spent,
        unanswered,
        agents,
        days,
        choices,
        spending: None,
    }
}

/// Adds a name, without a copy if it is known.
fn add(names: &mut BTreeSet<String>, name: &str) {
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}

fn outcome(call: &CallRecord) -> &str {
    let heard = call.heard.as_ref();
    heard.map_or("unheard", |heard| heard.outcome.as_str())
}

/// Returns the day of a time in UTC.
fn day(when: Timestamp) -> String {
    when.strftime("%Y-%m-%d").to_string()
}
