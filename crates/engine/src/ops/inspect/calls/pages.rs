//! The calls of a workspace as a table: filtered, in pages, with sums by agent and by day, and what is left of the limits.

use crate::ops::inspect::calls::cache::KnownCalls;
use crate::ops::inspect::calls::{
    CallSummary, Exchange, Refused, Spending, exchanges_with, spending_of,
};
use crate::ops::inspect::live::Live;
use crate::ops::project::error::OpsError;
use jiff::Timestamp;
use milepost_core::model::batched::CallId;
use milepost_core::model::call::{ANSWERED, Spent};
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
    /// The agent that was called.
    pub agent: Option<String>,
    /// The outcome, such as `answered` or `invalid`.
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
    /// The number of selected calls with an answer that is invalid as a whole or in part.
    pub invalid: u64,
    /// The selected calls by agent.
    pub agents: BTreeMap<String, Spent>,
    /// The selected calls by day in UTC.
    pub days: BTreeMap<String, Spent>,
    /// The stages, agents, outcomes and days of all calls.
    pub choices: CallChoices,
    /// The spending of the workspace and the rest of its limits; `None` if no agent was called and no limit is declared.
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
        let known = self
            .call_cache()
            .read(&opened.workspace.layout, is_running)?;
        let mut page = page_of(&known, query);
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
        let known = self.call_cache().read(&opened.workspace.layout, false)?;
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
        let mut exchanges = exchanges_with(&opened, vec![call], &known.refused);
        let missing = || OpsError::World(format!("the call {run}:{number} cannot be read"));
        let mut found = exchanges.pop().ok_or_else(missing)?;
        mark_invalid(&mut found.call, &known.refused);
        Ok(found)
    }

    /// Marks the calls whose answers are invalid: their outcome is `invalid`, and their message has the violations.
    ///
    /// # Errors
    /// When the calls cannot be read.
    pub fn mark_invalid_answers(&self, calls: &mut [CallSummary]) -> Result<(), OpsError> {
        let opened = self.with_state(|opened, _, _| opened.clone())?;
        let known = self.call_cache().read(&opened.workspace.layout, true)?;
        for call in calls {
            mark_invalid(call, &known.refused);
        }
        Ok(())
    }
}

/// The outcome of a call that was answered, if the answer or a part of it is invalid.
const INVALID: &str = "invalid";

fn mark_invalid(call: &mut CallSummary, refused: &Refused) {
    if let Some(violations) = refused.get(&(call.run.clone(), call.number)) {
        INVALID.clone_into(&mut call.outcome);
        call.message = Some(violations.join("; "));
    }
}

fn page_of(known: &KnownCalls, query: &CallQuery) -> CallPage {
    let mut choices = CallChoices::default();
    let (mut spent, mut unanswered, mut invalid) = (Spent::default(), 0, 0);
    let mut agents: BTreeMap<String, Spent> = BTreeMap::new();
    let mut days: BTreeMap<String, Spent> = BTreeMap::new();
    let mut found: Vec<&CallRecord> = Vec::new();
    let is =
        |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
    for call in &known.calls {
        let sent = &call.sent;
        let is_invalid = known.refused.contains_key(&(call.run.clone(), call.number));
        let is_answered = outcome(call) == ANSWERED;
        let outcome = if is_invalid { INVALID } else { outcome(call) };
        let day = day(call.when);
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
        let one = Spent::of(sent, call.response.as_ref());
        spent += one;
        unanswered += u64::from(!is_answered);
        invalid += u64::from(is_invalid);
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
        rows: rows
            .map(|call| {
                let mut summary = CallSummary::of((*call).clone());
                mark_invalid(&mut summary, &known.refused);
                summary
            })
            .collect(),
        matching: found.len() as u64,
        page: page as u64,
        pages: pages as u64,
        spent,
        unanswered,
        invalid,
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
    let response = call.response.as_ref();
    response.map_or("unheard", |response| response.outcome.as_str())
}

/// Returns the day of a time in UTC.
fn day(when: Timestamp) -> String {
    when.strftime("%Y-%m-%d").to_string()
}
