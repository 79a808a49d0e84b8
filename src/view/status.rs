//! `status` as text: a line for each stage, then what a run would do.

use crate::view::calls;
use crate::view::change::params::{notes as stored, replaced};
use crate::view::run::summary::shown;
use crate::view::text::collisions;
use crate::view::text::next_steps;
use crate::view::text::overrides;
use crate::view::text::style::Style;
use crate::view::text::table::{Side, table, time};
use crate::view::text::words::{
    approval, awaits, batches, count, grouped, needs_money, place, some_of,
};
use milepost_core::base::visible::visible;
use milepost_core::model::stage_word::StageWord;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::inspect::status::{PendingWork, StageOverview, Status, SubmittedJobs};
use milepost_engine::ops::project::half_published::half_published;

/// The most failed batches that are listed for a stage.
const SHOWN: usize = 5;

/// Returns the state of a workspace.
pub fn status(data: &Status, invocation: &Invocation) -> String {
    let place = format!("{} in {}", data.project, data.workspace);
    let mut text = format!("{}\n", visible(&place));
    match (&data.runner, &data.last_run) {
        (Some(runner), _) => {
            text.push_str(&format!(
                "running `{}` since {} (run {}, process {} on {})\n",
                visible(&runner.command),
                time(runner.since),
                runner.run_id,
                runner.pid,
                visible(&runner.host)
            ));
        }
        (None, Some(run)) => {
            text.push_str(&format!(
                "idle; the last run finished {}: {} (run {})\n",
                time(run.when),
                last_end(data),
                run.run_id
            ));
        }
        (None, None) => text.push_str("no run yet\n"),
    }
    if data.half_published > 0 {
        text.push_str(&format!("{}\n", half_published(data.half_published)));
    }
    text.push('\n');
    let rows: Vec<Vec<String>> = data.stages.iter().map(row).collect();
    let sides = [
        Side::Right,
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Left,
    ];
    text.push_str(&table(&sides, &rows));
    if !data.jobs.is_empty() {
        let jobs = data.jobs.iter().map(jobs);
        text.push_str(&format!("\n{}\n", jobs.collect::<Vec<_>>().join("\n")));
    }
    if !data.agents.is_empty() {
        text.push_str(&format!("\n{}", replaced(&data.agents)));
    }
    if let Some(money) = &data.money {
        text.push_str(&format!("\n{}", calls::spending(money)));
    }
    for stage in &data.stages {
        text.push_str(&notes(stage, data, invocation));
    }
    let stored = stored(Style::PLAIN, &data.stored, invocation);
    if !stored.is_empty() {
        text.push_str(&format!("\n{}\n", stored.join("\n")));
    }
    let is_due = data.stages.iter().any(|stage| stage.due.is_some());
    if !data.problems.is_empty() {
        text.push_str("\nThe declarations are wrong, so the plan of a run is unknown.\n");
    } else if data.runner.is_none() && !is_due {
        text.push_str("\nEverything is up to date.\n");
    }
    text
}

/// Returns how the last run ended.
pub(crate) fn last_end(data: &Status) -> &str {
    let status = data.last_run.as_ref().map(|run| run.status.as_str());
    let waits = |stage: &StageOverview| stage.state == StageWord::Waiting;
    match status.unwrap_or_default() {
        "held" if data.stages.iter().any(waits) => StageWord::Waiting.text(),
        status => shown(status),
    }
}

/// Returns a line for the jobs of a submission.
fn jobs(of: &SubmittedJobs) -> String {
    let nodes: Vec<&str> = of.states.nodes.iter().map(String::as_str).collect();
    let on = match nodes.as_slice() {
        [] => String::new(),
        nodes => format!(" on {}", nodes.join(", ")),
    };
    let reasons: Vec<&str> = of.states.reasons.iter().map(String::as_str).collect();
    let why = match reasons.as_slice() {
        [] => String::new(),
        reasons => format!(" ({})", reasons.join(", ")),
    };
    let since = of
        .states
        .running_since
        .map(|at| format!(" since {}", time(at)));
    visible(&format!(
        "{} {} for {}: {} queued{why}, {} running{on}{}, submitted {}",
        of.executor,
        of.id,
        of.stage,
        grouped(of.states.queued),
        grouped(of.states.running),
        since.unwrap_or_default(),
        time(of.submitted)
    ))
    .into_owned()
}

fn row(stage: &StageOverview) -> Vec<String> {
    let total = stage.batches.map_or_else(|| "?".to_owned(), grouped);
    let batches = format!("{} of {total}", grouped(stage.done));
    let elements = stage
        .elements
        .map(|elements| count(elements, "element", "elements"));
    vec![
        stage.number.to_string(),
        stage.stage.clone(),
        stage.state.text().to_owned(),
        batches,
        elements.unwrap_or_default(),
        stage.spent.as_ref().map(calls::spent).unwrap_or_default(),
        stage.when.map(time).unwrap_or_default(),
        stage.checkpoint.clone().unwrap_or_default(),
    ]
}

fn notes(stage: &StageOverview, data: &Status, invocation: &Invocation) -> String {
    let mut text = String::new();
    let name = &stage.stage;
    if !stage.running.is_empty() {
        let some = some_of(stage.running.iter().map(String::as_str), SHOWN);
        text.push_str(&format!("  {name}: running {some}\n"));
    }
    for failed in stage.failed.iter().take(SHOWN) {
        text.push_str(&format!(
            "  {} failed: {}\n",
            place(name, &failed.batch),
            failed.outcome
        ));
    }
    if stage.failed.len() > SHOWN {
        let more = stage.failed.len() - SHOWN;
        text.push_str(&format!(
            "  {name}: {more} more failed (`{}`)\n",
            invocation.line(&["log", name, "--errors"])
        ));
    }
    if stage.verdict == Some(false) {
        text.push_str(&format!("  {name}: negative verdict\n"));
    }
    for one in stage.overrides.iter().take(SHOWN) {
        text.push_str(&format!(
            "  {name}: modified by hand: {}\n",
            overrides::line(one)
        ));
    }
    if stage.overrides.len() > SHOWN {
        let more = stage.overrides.len() - SHOWN;
        let verify = invocation.line(&["verify"]);
        text.push_str(&format!(
            "  {name}: {more} more modified by hand (`{verify}`)\n"
        ));
    }
    for warning in collisions::warnings(name, &stage.collisions) {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    if let Some(due) = &stage.due {
        text.push_str(&due_text(stage, due, data, invocation));
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// Returns what a run would do about a stage, and what it needs before, a line each.
pub(crate) fn due_text(
    stage: &StageOverview,
    due: &PendingWork,
    data: &Status,
    invocation: &Invocation,
) -> String {
    let name = &stage.stage;
    let why = invocation.line(&["why", name]);
    let mut parts = Vec::new();
    for (count, what) in [
        (due.will, "will run"),
        (due.may, "may run"),
        (due.restore, "will be restored from quarantine"),
        (due.judge, "will be revalidated"),
        (due.retire, "will be retired"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", batches(count)));
        }
    }
    let mut text = String::new();
    if !parts.is_empty() {
        text.push_str(&format!("  {name}: {} (`{why}`)\n", parts.join(", ")));
    }
    if due.forced > 0 {
        let how = if due.forced_interrupted {
            "was interrupted"
        } else {
            "ended without rebuilding them"
        };
        text.push_str(&format!(
            "  {name}: {} forced by an earlier run that {how}\n",
            batches(due.forced)
        ));
    }
    if due.checkpoint {
        text.push_str(&format!(
            "  {name}: the checkpoint is missing; the next run writes it\n"
        ));
    }
    if !due.altered.is_empty() {
        let files = some_of(due.altered.iter().map(String::as_str), SHOWN);
        text.push_str(&format!("  {name}: modified by hand: {files}\n"));
        let paths: Vec<&str> = due.altered.iter().map(String::as_str).collect();
        let next_steps =
            next_steps::after_altered(name, stage.number, &paths, &data.workspace, invocation);
        for line in next_steps::lines(&next_steps, "", &str::to_owned) {
            text.push_str(&format!("    {}\n", line.trim_start()));
        }
    }
    if let Some(awaited) = &due.approval {
        let (command, _) = next_steps::approve(name, invocation);
        text.push_str(&format!("  {name}: {} (`{command}`)\n", approval(awaited)));
    }
    if let Some(awaited) = &due.awaits {
        let (command, what) = next_steps::outside(invocation);
        text.push_str(&format!(
            "  {name}: {} (`{command}` {what})\n",
            awaits(awaited)
        ));
    }
    if let Some(awaited) = &due.money {
        text.push_str(&format!("  {name}: {}\n", needs_money(awaited)));
    }
    if let Some(problem) = &due.problem {
        text.push_str(&format!("  {name}: {}\n", visible(problem)));
    }
    text
}
