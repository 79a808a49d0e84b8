//! The last lines of a plan: what would run in all, and the command that runs it.

use crate::view::text::next_steps;
use crate::view::text::style::Style;
use crate::view::text::words::{batches, count, grouped};
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::plan::{Plan, StagePlan};

#[expect(clippy::too_many_lines)]
pub(crate) fn conclusion(
    style: Style,
    plan: &Plan,
    stages: &[&StagePlan],
    invocation: &Invocation,
) -> String {
    let sum = |of: &dyn Fn(&StagePlan) -> usize| {
        stages.iter().map(|stage| of(stage)).sum::<usize>() as u64
    };
    let (will, may) = (
        sum(&|stage| stage.will.len()),
        sum(&|stage| stage.may.len()),
    );
    let judge = sum(&|stage| stage.judge.len());
    let restore = sum(&|stage| stage.restore.len());
    let uncertain = stages.iter().any(|stage| !stage.certain);
    let forgotten = plan.forgotten.len() as u64;
    let retire = sum(&|stage| stage.retire.len());
    let wrong = sum(&|stage| {
        usize::from(stage.problem.is_some()) + stage.altered.len() + stage.missing.len()
    });
    let waits = stages.iter().any(|stage| stage.awaits.is_some());
    let unapproved = stages.iter().find(|stage| stage.approval.is_some());
    let blocked = stages.iter().any(|stage| stage.blocked.is_some());
    let checkpoints = sum(&|stage| usize::from(stage.checkpoint));
    let nothing = checkpoints + will + may + restore + judge + retire + wrong + forgotten == 0;
    let stops = |why: &str, next: &[(String, String)]| {
        let code = |text: &str| style.code(text);
        let mut lines = vec![why.to_owned()];
        lines.extend(next_steps::lines(next, "next", &code));
        lines.join("\n")
    };
    if nothing && let Some(stage) = unapproved {
        let next = next_steps::approve(&stage.stage, invocation);
        return stops("nothing can run until these batches are approved", &[next]);
    }
    if nothing && stages.iter().any(|stage| stage.money.is_some()) {
        return match next_steps::pay(invocation) {
            None => stops("nothing can run within the budget", &[]),
            Some(next) => stops("nothing can run without these calls", &[next]),
        };
    }
    if nothing && waits {
        let next = next_steps::outside(invocation);
        return stops(
            "nothing can run until these questions are answered",
            &[next],
        );
    }
    if nothing && !uncertain && !blocked {
        if stages.iter().any(|stage| stage.left > 0) {
            return format!("{} nothing is selected", style.good("nothing to do:"));
        }
        let why = match stages {
            [one] => format!("up to date: {}, nothing changed", one.stage),
            all => format!("up to date: {} stages, nothing changed", all.len()),
        };
        return style.good(why);
    }
    let mut parts = Vec::new();
    if will > 0 {
        parts.push(format!("{} will run", batches(will)));
    }
    if may > 0 {
        parts.push(format!("{} may", grouped(may)));
    } else if uncertain && will > 0 {
        parts.push("later stages depend on their outputs".to_owned());
    }
    if restore > 0 {
        parts.push(format!("{} restored from quarantine", batches(restore)));
    }
    if judge > 0 {
        parts.push(format!("{} revalidated", batches(judge)));
    }
    if parts.is_empty() && checkpoints > 0 && retire + forgotten + wrong == 0 && !blocked {
        let what = count(checkpoints, "checkpoint is", "checkpoints are");
        parts.push(format!("{what} written, nothing else changes"));
    }
    if parts.is_empty() && retire + forgotten > 0 {
        parts.push("outputs that are no longer declared go to quarantine".to_owned());
    }
    let is_blocked = |stage: &&&StagePlan| stage.blocked.is_some();
    if let Some(stage) = stages
        .iter()
        .find(is_blocked)
        .filter(|_| will + may + restore + judge + wrong == 0)
    {
        let by = stage.blocked_by.as_ref();
        let next_steps = next_steps::after_blocked(&stage.stage, by, &plan.workspace, invocation);
        if let [(command, _)] = next_steps.as_slice() {
            return format!(
                "nothing can run; to run {} with the stages before it: {}",
                stage.stage,
                style.code(command)
            );
        }
        let code = |text: &str| style.code(text);
        let mut lines = vec!["nothing can run".to_owned()];
        lines.extend(next_steps::lines(&next_steps, "next", &code));
        return lines.join("\n");
    }
    if let Some(stage) = stages.iter().find(|stage| !stage.altered.is_empty()) {
        parts.push(format!("the run would stop at {}", stage.stage));
    } else if wrong > 0 {
        parts.push("not everything can run".to_owned());
    } else {
        return format!(
            "{}; to do it: {}",
            parts.join(", "),
            style.code(invocation.same_run())
        );
    }
    parts.join(", ")
}
