//! The words of a timeline, and the classes of its shapes.

use crate::view::run::summary::shown as ending;
use crate::view::text::words::{batches, count, grouped, seconds};
use milepost_engine::ops::inspect::history::timeline::{BarKind, TimelineBar, TimelineLane};
use milepost_engine::ops::inspect::history::{BarResult, MarkKind, PartKind, Run, timestamp};

/// The most agents of a lane that are named.
const AGENTS: usize = 5;

/// Returns `run 01M8… · milepost run · complete · 18 batches`.
pub(super) fn run_title(run: &Run) -> String {
    let end = run.status.as_deref().map_or("no end recorded", ending);
    let command = if run.command.is_empty() {
        String::new()
    } else {
        format!(" · {}", run.command)
    };
    format!(
        "Run {}{command} · {end} · {}",
        run.run,
        batches(run.batches)
    )
}

/// Returns the roles that act in a lane, unless it is the stage itself.
pub(super) fn roles(lane: &TimelineLane) -> Vec<&str> {
    let agents = lane.agents.iter().map(String::as_str);
    agents.filter(|who| *who != lane.stage).collect()
}

/// Returns the lines below the name of a lane: a role each.
pub(super) fn about(lane: &TimelineLane) -> Vec<String> {
    let roles = roles(lane);
    let named = roles.iter().take(AGENTS).map(|&role| role.to_owned());
    let mut lines: Vec<String> = named.collect();
    if let Some(more) = roles.len().checked_sub(AGENTS)
        && more > 0
    {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Returns a lane in words.
pub(super) fn spoken(lane: &TimelineLane) -> String {
    let who = roles(lane);
    let by = if who.is_empty() {
        String::new()
    } else {
        format!(" by {}", who.join(", "))
    };
    format!("{}: {}{by}", lane.stage, batches(lane.batches))
}

/// Returns a time on the axis.
pub(super) fn tick(at: i64, step: i64) -> String {
    let format = match step {
        ..1_000 => "%H:%M:%S%.1f",
        1_000..60_000 => "%H:%M:%S",
        60_000..86_400_000 => "%H:%M",
        _ => "%b %-d",
    };
    timestamp(at).strftime(format).to_string()
}

/// Returns a moment in UTC, to the second or to a tenth of it.
pub(super) fn moment(at: i64, step: i64) -> String {
    let format = if step < 1000 {
        "%F %H:%M:%S%.1fZ"
    } else {
        "%F %H:%M:%SZ"
    };
    timestamp(at).strftime(format).to_string()
}

pub(super) fn bar_title(lane: &TimelineLane, bar: &TimelineBar) -> String {
    let lasted = seconds(bar.to.saturating_sub(bar.from) as f64 / 1000.0);
    let from = moment(bar.from, 100);
    let what = match (bar.kind, bar.count) {
        (BarKind::Batch, 1) if bar.name.is_empty() => lane.stage.clone(),
        (BarKind::Batch, 1) => format!("{}/{}", lane.stage, bar.name),
        (BarKind::Batch, many) => format!("{}: {}", lane.stage, batches(many)),
        (BarKind::Part(PartKind::Iteration), 1) => format!("iteration {}", bar.name),
        (BarKind::Part(PartKind::Iteration), many) => count(many, "iteration", "iterations"),
        (BarKind::Part(PartKind::Step), 1) => bar.name.clone(),
        (BarKind::Part(PartKind::Step), many) => count(many, "step", "steps"),
        (BarKind::Part(PartKind::Call), 1) => format!("call of {}", bar.name),
        (BarKind::Part(PartKind::Call), many) => count(many, "call", "calls"),
    };
    let ended = match (bar.count, bar.failed) {
        (1, _) => result_word(bar.kind, bar.result).to_owned(),
        (_, 0) => "none failed".to_owned(),
        (_, failed) => format!("{} failed", grouped(failed)),
    };
    let attempts = match bar.attempts {
        0 | 1 => String::new(),
        many => format!(", {many} attempts"),
    };
    format!("{what}, {ended}{attempts}, {lasted} from {from}")
}

pub(super) fn result_word(kind: BarKind, result: BarResult) -> &'static str {
    match (kind, result) {
        (BarKind::Part(PartKind::Call), BarResult::Built) => "answered",
        (BarKind::Part(PartKind::Iteration), BarResult::Built) => "satisfied",
        (_, BarResult::Built) => "complete",
        (_, BarResult::Repeated) => "not satisfied",
        (_, BarResult::Cancelled) => "cancelled",
        (_, BarResult::Interrupted) => "interrupted",
        (_, BarResult::Running) => "running",
        (_, BarResult::Failed) => "failed",
    }
}

pub(super) fn result_class(result: BarResult) -> &'static str {
    match result {
        BarResult::Built => "d-built",
        BarResult::Repeated => "d-repeated",
        BarResult::Cancelled | BarResult::Interrupted => "d-broken",
        BarResult::Running => "d-busy",
        BarResult::Failed => "d-bad",
    }
}

pub(super) fn part_class(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Iteration => "d-iteration",
        PartKind::Step => "d-step",
        PartKind::Call => "d-call",
    }
}

pub(super) fn mark_word(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Handoff => "hand-off",
        MarkKind::Positive => "positive verdict",
        MarkKind::Negative => "negative verdict",
        MarkKind::Failure => "failure",
        MarkKind::Approved => "approval",
        MarkKind::Accepted => "acceptance",
    }
}
