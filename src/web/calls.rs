//! Calls of agents: the table with sums, and one call with its prompt and its answer.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use super::tables::Pages;
use crate::page::value;
use crate::view;
use milepost_core::model::call::Spent;
use milepost_engine::ops::inspect::calls::CallSummary;
use milepost_engine::ops::inspect::calls::pages::CallQuery;
use minijinja::{Value, context};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The parameters that select calls, beside `page`.
const PARAMETERS: [&str; 5] = ["stage", "batch", "agent", "outcome", "day"];

/// The most days whose sums are listed: the latest.
const DAYS: usize = 31;

/// The sum of some calls.
#[derive(Serialize)]
struct Sum<'a> {
    name: &'a str,
    href: String,
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    cost: String,
    /// The mean duration in seconds.
    mean: f64,
}

/// Returns calls for a table.
pub(super) fn lines(calls: &[CallSummary]) -> Vec<Value> {
    let lines = calls.iter().map(|call| {
        context! {
            tokens_in => call.usage.total_input(),
            tokens_out => call.usage.output,
            ..value(call)
        }
    });
    lines.collect()
}

/// Shows the table of calls.
pub(super) fn calls(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let [stage, batch, agent, outcome, day] =
        PARAMETERS.map(|name| request.query(name).map(str::to_owned));
    let query = CallQuery {
        stage,
        batch,
        agent,
        outcome,
        day,
        page: request.number("page")?.unwrap_or(1),
    };
    let page = site.live.calls(&query)?;
    let at = site.live.changes(None)?.at;
    let parameters = request.parameters(&PARAMETERS);
    let choices = &page.choices;
    let filter = |name, title, all: &BTreeSet<String>| {
        let set = request.query(name);
        let options = all
            .iter()
            .map(|one| (one.clone(), set == Some(one.as_str())));
        value((name, title, options.collect::<Vec<_>>()))
    };
    let filters = [
        filter("stage", "Stage", &choices.stages),
        filter("agent", "Agent", &choices.agents),
        filter("outcome", "Outcome", &choices.outcomes),
        filter("day", "Day", &choices.days),
    ];
    let data = context! {
        rows => lines(&page.rows),
        pages => value(Pages::new(site, "calls", &parameters, (page.page, page.pages, page.matching))),
        filters,
        batch => query.batch,
        is_filtered => !parameters.is_empty(),
        total => view::calls::spent(&page.spent),
        tokens => view::calls::tokens(&page.spent.usage),
        unanswered => page.unanswered,
        invalid => page.invalid,
        sums => sums(site, request, &page.agents, &page.days),
        spending => page.spending.as_ref().map(view::calls::spending),
        at,
    };
    Ok(site.page("calls.html", "calls", "Calls", data)?)
}

/// Shows a call.
pub(super) fn call(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let missing = || WebError::Wrong("the URL lacks the parameter `number`".to_owned());
    let number = request.number("number")?.ok_or_else(missing)?;
    let found = site.live.call(request.required("run")?, number)?;
    let call = &found.call;
    let data = context! {
        call => value(call),
        tokens => view::calls::tokens(&call.usage),
        prompt => found.prompt,
        text => found.text,
        wrong => found.wrong,
        request => call.request.to_string(),
        answer => call.answer.as_ref().map(ToString::to_string),
    };
    let title = format!("Call {}:{number}", call.run);
    Ok(site.page("call.html", "calls", &title, data)?)
}

/// Returns the tables of sums: by agent, and by the latest days.
fn sums(
    site: &Site,
    request: &PageRequest,
    agents: &BTreeMap<String, Spent>,
    days: &BTreeMap<String, Spent>,
) -> Value {
    let of = |parameter: &'static str, (name, spent): (&str, &Spent)| {
        let kept = request.parameters(&PARAMETERS).into_iter();
        let mut parameters: Vec<(&str, &str)> =
            kept.filter(|(kept, _)| *kept != parameter).collect();
        parameters.push((parameter, name));
        value(Sum {
            name,
            href: site.url("calls", &parameters),
            calls: spent.calls,
            tokens_in: spent.usage.total_input(),
            tokens_out: spent.usage.output,
            cost: view::calls::cost(spent),
            mean: spent.took_ms as f64 / 1000.0 / spent.calls.max(1) as f64,
        })
    };
    let by_agent = agents
        .iter()
        .map(|(name, spent)| of("agent", (name, spent)));
    let by_day = days
        .iter()
        .rev()
        .take(DAYS)
        .map(|(name, spent)| of("day", (name, spent)));
    context! {
        agents => by_agent.collect::<Vec<_>>(),
        days => by_day.collect::<Vec<_>>(),
        more_days => days.len().saturating_sub(DAYS),
    }
}
