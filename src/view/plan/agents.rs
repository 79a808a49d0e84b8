//! The calls of agents that a plan expects, and what they cost.

use crate::view::text::words::{at_most, batches, count, grouped};
use milepost_core::base::visible::visible;
use milepost_engine::ops::plan::{Asks, Basis, StagePlan};

pub(crate) fn asks(stage: &StagePlan) -> Vec<String> {
    let mut lines = Vec::new();
    for (asks, lead) in [
        (&stage.asks, "asks"),
        (&stage.unapproved_ask, "would ask"),
        (&stage.unpaid_ask, "would ask"),
        (&stage.may_ask, "may ask"),
    ] {
        let Some(asks) = asks else { continue };
        let who = asks.agents.join(", ");
        let kept = match asks.kept {
            0 => String::new(),
            kept => format!(", {} kept", count(kept, "answer is", "answers are")),
        };
        if asks.calls == 0 && asks.unknown == 0 && !asks.more_calls {
            lines.push(format!("{lead} {who} nothing{kept}"));
            continue;
        }
        let mut parts = Vec::new();
        if asks.calls > 0 || asks.more_calls {
            let least = if asks.more_calls { "at least " } else { "" };
            let calls = count(asks.calls, "call", "calls");
            let questions = if asks.questions == asks.calls {
                String::new()
            } else {
                let questions = count(asks.questions, "question", "questions");
                format!(" with {questions}")
            };
            let more = at_most(asks.calls, asks.iterations, asks.most_calls);
            parts.push(format!("{least}{calls}{questions}{more}{kept}"));
        }
        if asks.unknown > 0 {
            let why = asks.why.as_deref().unwrap_or_default();
            let batches = batches(asks.unknown);
            parts.push(format!(
                "the questions of {batches} are not known yet: {}",
                visible(why)
            ));
        }
        lines.push(format!("{lead} {who}: {}", parts.join("; ")));
        if asks.input_tokens + asks.output_tokens > 0 {
            lines.push(format!("{}; {}", money(asks), basis(asks.basis)));
        }
    }
    lines
}

fn money(asks: &Asks) -> String {
    let tokens = format!(
        "about {} tokens in and {} out",
        grouped(asks.input_tokens),
        grouped(asks.output_tokens)
    );
    let of_first = asks.iterations.map_or("", |_| " in the first iteration");
    let these = match (asks.later_calls, asks.iterations) {
        (0, None) => "these calls",
        (0, Some(_)) => "the calls of the first iteration",
        _ => "the first calls",
    };
    let cost = match (asks.cost, asks.most_cost, asks.iterations) {
        (None, ..) => "cost unknown".to_owned(),
        (Some(cost), Some(most), Some(iterations)) if most > cost => {
            format!("about {cost} to {most} for 1 to {iterations} iterations")
        }
        (Some(cost), ..) => format!("about {cost}"),
    };
    let has_more = asks.has_budget && asks.cost < asks.reserved;
    let reserved = asks.reserved.filter(|_| has_more);
    let reserved = reserved.map(|sum| format!("; a budget reserves {sum} for {these}"));
    format!("{tokens}{of_first}, {cost}{}", reserved.unwrap_or_default())
}

fn basis(basis: Basis) -> String {
    match basis {
        Basis::Declared => "from [estimate]".to_owned(),
        Basis::Measured(1) => "based on 1 earlier call".to_owned(),
        Basis::Measured(calls) => format!("based on {} earlier calls", grouped(calls)),
        Basis::Assumed(tokens) => format!("assuming {} tokens per answer", grouped(tokens)),
    }
}
