//! Calls of agents as text: their cost, prompts and answers.

use crate::view::text::table::{Side, time};
use crate::view::text::words::{count, grouped, indented, seconds};
use milepost_core::base::visible::{visible, visible_lines};
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use milepost_engine::ops::inspect::calls::{BatchCalls, CallSummary, Exchange, Spending};

/// The most lines that are shown of a prompt or an answer.
const SHOWN: usize = 200;

/// Returns `3 calls for $0.02 (1 estimated)`. Calls that cost nothing have no price, such as those of external agents.
pub(crate) fn spent(spent: &Spent) -> String {
    let calls = count(spent.calls, "call", "calls");
    let estimated = match spent.estimated {
        0 => String::new(),
        all if all == spent.calls => " (estimated)".to_owned(),
        some => format!(" ({} estimated)", grouped(some)),
    };
    match (spent.unpriced, spent.cost) {
        (0, NanoUsd::ZERO) => calls,
        (0, cost) => format!("{calls} for {cost}{estimated}"),
        (unknown, _) if unknown == spent.calls => format!("{calls}, cost unknown"),
        (unknown, cost) => format!(
            "{calls} for {cost}{estimated}, {} of unknown cost",
            grouped(unknown)
        ),
    }
}

/// Returns the cost alone; empty for calls that cost nothing.
pub(crate) fn cost(spent: &Spent) -> String {
    match (spent.unpriced, spent.cost) {
        (0, NanoUsd::ZERO) => String::new(),
        (0, cost) if spent.estimated > 0 => format!("{cost} (partly estimated)"),
        (0, cost) => cost.to_string(),
        (unknown, _) if unknown == spent.calls => "unknown".to_owned(),
        (unknown, cost) => format!("{cost}, {} of unknown cost", grouped(unknown)),
    }
}

/// Returns `1,200 tokens in (900 of them cached), 80 out`.
pub(crate) fn tokens(usage: &Usage) -> String {
    let cached = match usage.cache_read {
        0 => String::new(),
        cached => format!(" ({} of them cached)", grouped(cached)),
    };
    format!(
        "{} tokens in{cached}, {} out",
        grouped(usage.total_input()),
        grouped(usage.output)
    )
}

/// Returns the number of calls with cost and tokens.
fn spent_with_tokens(of: &Spent) -> String {
    match of.usage.total() {
        0 => spent(of),
        _ => format!("{}, {}", spent(of), tokens(&of.usage)),
    }
}

/// The alignment of the cells of a call.
pub(crate) const SIDES: [Side; 8] = [
    Side::Left,
    Side::Left,
    Side::Left,
    Side::Right,
    Side::Left,
    Side::Left,
    Side::Right,
    Side::Right,
];

/// Returns the cells of a call: time, id, agent, questions, outcome, tokens, cost, duration.
pub(crate) fn row(call: &CallSummary) -> Vec<String> {
    let used = match call.usage.total() {
        0 => String::new(),
        _ => tokens(&call.usage),
    };
    vec![
        time(call.when),
        format!("{}:{}", call.run, call.number),
        who(call),
        count(call.questions, "question", "questions"),
        call.outcome.clone(),
        used,
        call.cost
            .filter(|&cost| cost != NanoUsd::ZERO)
            .map_or_else(String::new, |cost| match call.estimated {
                Some(_) => format!("{cost} (estimated)"),
                None => cost.to_string(),
            }),
        call.seconds.map_or_else(String::new, seconds),
    ]
}

/// Returns `api (gpt-5.1, served gpt-5.1-2026)`.
fn who(call: &CallSummary) -> String {
    let served = call
        .served
        .as_ref()
        .filter(|served| Some(*served) != call.model.as_ref());
    match (&call.model, served) {
        (Some(model), Some(served)) => format!("{} ({model}, served {served})", call.agent),
        (Some(model), None) => format!("{} ({model})", call.agent),
        (None, Some(served)) => format!("{} (served {served})", call.agent),
        (None, None) => format!("{} ({})", call.agent, call.provider),
    }
}

/// Returns the sources of the answers of a batch, and its calls.
pub(crate) fn batch_calls(asked: &BatchCalls) -> String {
    let mut text = String::from("\nanswers\n");
    if asked.answers > 0 {
        let own = asked.answers - asked.kept;
        let mut parts = Vec::new();
        if own > 0 {
            parts.push(format!("{} answered in the same run", grouped(own)));
        }
        if asked.kept > 0 {
            parts.push(format!("{} stored earlier", grouped(asked.kept)));
        }
        text.push_str(&format!(
            "  {}: {}\n",
            count(asked.answers, "question", "questions"),
            parts.join(", ")
        ));
        for from in &asked.from {
            let place = if asked.elsewhere.contains(&from.run) {
                ", in another workspace"
            } else {
                ""
            };
            text.push_str(&format!(
                "  {} from call {}:{}{place}\n",
                grouped(from.answers),
                from.run,
                from.call
            ));
        }
    }
    if asked.calls.is_empty() {
        text.push_str("  no call was made for this batch\n");
        return text;
    }
    text.push_str(&format!("\ncalls: {}\n", spent_with_tokens(&asked.spent)));
    if asked.more > 0 {
        text.push_str(&format!("  … {} earlier\n", grouped(asked.more)));
    }
    let rows: Vec<Vec<String>> = asked.calls.iter().map(row).collect();
    let lines = crate::view::text::table::table(&SIDES, &rows);
    for (line, call) in lines.lines().zip(&asked.calls) {
        text.push_str(&format!("  {line}\n"));
        text.push_str(&indented(&more(call), 4));
    }
    text
}

/// Returns the error of a call, and the files of request and answer.
fn more(call: &CallSummary) -> String {
    let message = call.message.as_ref();
    let mut text = message.map_or_else(String::new, |message| format!("{}\n", visible(message)));
    text.push_str(call.request.as_str());
    if let Some(answer) = &call.answer {
        text.push_str(&format!(", {}", answer.file_name()));
    }
    text.push('\n');
    text
}

/// Returns a call with its prompt and answer.
pub(crate) fn exchange(exchange: &Exchange) -> String {
    let call = &exchange.call;
    let place = crate::view::text::words::place(&call.stage, &call.batch);
    let cells = row(call);
    let cells: Vec<&str> = cells
        .iter()
        .map(String::as_str)
        .filter(|cell| !cell.is_empty())
        .collect();
    let cells = cells.join("  ");
    let mut text = format!("{place}  {}\n", visible(&cells));
    text.push_str(&indented(&more(call), 2));
    for (what, said) in [("asked", &exchange.prompt), ("answered", &exchange.text)] {
        match said {
            Some(said) => {
                text.push_str(&format!("  {what}:\n"));
                text.push_str(&indented(&shown(said), 4));
            }
            None => text.push_str(&format!("  {what}: not stored\n")),
        }
    }
    if !exchange.wrong.is_empty() {
        text.push_str("  not valid:\n");
        text.push_str(&indented(&shown(&exchange.wrong.join("\n")), 4));
    }
    text
}

/// Returns the start of a text.
fn shown(text: &str) -> String {
    let text = visible_lines(text);
    let lines = text.lines().count();
    let mut all: String = text
        .lines()
        .take(SHOWN)
        .flat_map(|line| [line, "\n"])
        .collect();
    if lines > SHOWN {
        let more = (lines - SHOWN) as u64;
        all.push_str(&format!(
            "… and {} (`--json` has all)\n",
            count(more, "line", "lines")
        ));
    }
    all
}

/// Returns the cost of a workspace, and what is left of its limits.
pub(crate) fn spending(money: &Spending) -> String {
    let mut text = match money.spent.calls {
        0 => "no agent was called yet".to_owned(),
        _ => format!("agents: {}", spent_with_tokens(&money.spent)),
    };
    let mut left = Vec::new();
    if let Some(usd) = money.usd {
        left.push(format!("{} of {}", NanoUsd(usd.left), NanoUsd(usd.limit)));
    }
    for (limit, what) in [(money.tokens, "tokens"), (money.calls, "calls")] {
        if let Some(limit) = limit {
            left.push(format!(
                "{} of {} {what}",
                grouped(limit.left),
                grouped(limit.limit)
            ));
        }
    }
    if let Some(time) = money.time {
        let shown = |milliseconds: u64| seconds(milliseconds as f64 / 1000.0);
        left.push(format!(
            "{} of {} of calls",
            shown(time.left),
            shown(time.limit)
        ));
    }
    if !left.is_empty() {
        text.push_str(&format!("; left: {}", left.join(", ")));
    }
    text.push('\n');
    for place in &money.unreadable {
        text.push_str(&format!("warning: {place}: its cost is missing\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_cost_something_have_a_price() {
        let of = |calls, unpriced, cost| {
            spent(&Spent {
                calls,
                unpriced,
                cost: NanoUsd(cost),
                ..Spent::default()
            })
        };
        assert_eq!(of(2, 0, 0), "2 calls");
        let estimated = |estimated| Spent {
            calls: 2,
            cost: NanoUsd(20_000_000),
            estimated,
            ..Spent::default()
        };
        assert_eq!(spent(&estimated(2)), "2 calls for $0.0200 (estimated)");
        assert_eq!(spent(&estimated(1)), "2 calls for $0.0200 (1 estimated)");
        assert_eq!(of(1, 0, 20_000_000), "1 call for $0.0200");
        assert_eq!(of(3, 3, 0), "3 calls, cost unknown");
        assert_eq!(
            of(3, 2, 20_000_000),
            "3 calls for $0.0200, 2 of unknown cost"
        );
    }
}
