//! `plan` as text: what a run would do, stage by stage, with the reasons.

mod agents;
mod conclusion;

use crate::view::change::params::notes;
use crate::view::run::notice;
use crate::view::text::collisions;
use crate::view::text::next_steps;
use crate::view::text::reason::{change, condition, reason};
use crate::view::text::reason_groups::{Class, Groups, class};
use crate::view::text::style::Style;
use crate::view::text::words::{
    NAMED, awaits, batches, count, grouped, needs_approval, needs_money, some_of,
};
use agents::asks;
use conclusion::conclusion;
use milepost_core::base::visible::visible;
use milepost_core::model::fingerprint::OUTSIDE;
use milepost_core::model::reason::Condition;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::plan::{Plan, RetiredFile, StagePlan};
use milepost_engine::ops::project::half_published::half_published;
use std::collections::BTreeSet;

/// The most retired files that are listed for a stage.
const RETIRED: usize = 20;

/// The most batches that fail before they begin that are listed for a stage.
const MISSING: usize = 20;

/// Returns the whole plan, with the next steps.
pub(crate) fn text(style: Style, plan: &Plan, invocation: &Invocation) -> String {
    let (mut text, conclusion) = parts(style, plan, invocation);
    text.push_str(&conclusion);
    text + "\n"
}

/// Returns the plan after a run, which has shown the next steps.
pub(crate) fn after_run(style: Style, plan: &Plan, invocation: &Invocation) -> String {
    let (mut text, conclusion) = parts(style, plan, invocation);
    text.push_str(conclusion.lines().next().unwrap_or_default());
    text + "\n"
}

/// Returns the plan and its conclusion: a line, and the next steps on lines of their own.
fn parts(style: Style, plan: &Plan, invocation: &Invocation) -> (String, String) {
    let place = style.dim(format!("in {}", visible(&invocation.near(&plan.workspace))));
    let mut lines = vec![format!("{} {place}", style.strong(visible(&plan.project)))];
    for warning in &plan.warnings {
        lines.push(format!("{} {}", style.warn("warning:"), visible(warning)));
    }
    for stage in &plan.stages {
        for warning in collisions::warnings(&stage.stage, &stage.collisions) {
            lines.push(format!("{} {warning}", style.warn("warning:")));
        }
    }
    if plan.half_published > 0 {
        let text = half_published(plan.half_published);
        lines.push(format!("{} {text}", style.strong("note:")));
    }
    lines.extend(notes(style, &plan.stored, invocation));
    for stage in &plan.forgotten {
        lines.extend(forgotten(style, plan, stage));
    }
    let stages: Vec<&StagePlan> = plan.stages.iter().filter(|stage| !stage.skipped).collect();
    lines.push(String::new());
    lines.extend(stage_lines(style, plan, &stages, invocation));
    lines.push("\n".to_owned());
    let conclusion = conclusion(style, plan, &stages, invocation);
    (lines.join("\n"), conclusion)
}

/// Returns the list of what no plan notices.
pub(crate) fn outside(style: Style) -> String {
    let items = OUTSIDE.iter().map(|item| format!("  - {item}\n"));
    let note = style.strong("note:");
    let items: String = items.collect();
    format!("\n{note} no batch becomes out of date because one of these changes:\n{items}")
}

/// Returns the stages that a run would change or that are blocked, with the reasons.
pub(crate) fn changes(style: Style, plan: &Plan, invocation: &Invocation) -> String {
    let gone = plan.forgotten.iter();
    let gone = gone.flat_map(|stage| forgotten(style, plan, stage));
    let mut lines: Vec<String> = gone.collect();
    let says = |stage: &&StagePlan| {
        !stage.skipped
            && (!stage.is_idle()
                || stage.checkpoint
                || !stage.altered.is_empty()
                || stage.approval.is_some()
                || stage.money.is_some()
                || stage.blocked.is_some())
    };
    let stages: Vec<&StagePlan> = plan.stages.iter().filter(says).collect();
    lines.extend(stage_lines(style, plan, &stages, invocation));
    lines.join("\n")
}

fn forgotten(style: Style, plan: &Plan, stage: &str) -> Vec<String> {
    let name = style.strong(visible(stage));
    let mut lines = vec![format!(
        "{name} is no longer declared: its outputs go to quarantine"
    )];
    let files = plan.retires.iter();
    let files: Vec<&RetiredFile> = files.filter(|file| file.stage == stage).collect();
    lines.extend(retires(&files).into_iter().map(|line| format!("  {line}")));
    lines
}

/// Returns a line for each retired file, up to a limit.
fn retires(files: &[&RetiredFile]) -> Vec<String> {
    let shown = files.iter().take(RETIRED);
    let mut lines: Vec<String> = shown
        .map(|file| format!("retires {}: it goes to quarantine", visible(&file.path)))
        .collect();
    if files.len() > RETIRED {
        let more = (files.len() - RETIRED) as u64;
        lines.push(format!("retires {} more", count(more, "file", "files")));
    }
    lines
}

/// Returns a line for each stage, with its reasons below.
fn stage_lines(
    style: Style,
    plan: &Plan,
    stages: &[&StagePlan],
    invocation: &Invocation,
) -> Vec<String> {
    let names = stages.iter().map(|stage| stage.stage.chars().count());
    let width = names.max().unwrap_or(0);
    let mut lines = Vec::new();
    for stage in stages {
        let name = style.strong(format!("{:width$}", stage.stage));
        lines.push(format!(
            "{:>3} {name}  {}",
            stage.number,
            headline(style, stage)
        ));
        let below = reasons(style, stage)
            .into_iter()
            .chain(jobs(stage))
            .chain(asks(stage))
            .chain(first_actions(style, stage))
            .chain(ways_on(style, plan, stage, invocation));
        lines.extend(below.map(|line| format!("    {:width$}  {line}", "")));
    }
    lines
}

/// Returns the jobs that a run would submit, in one line.
fn jobs(stage: &StagePlan) -> Option<String> {
    let planned = stage.jobs.as_ref()?;
    Some(format!(
        "submits {} with `{}`, of at most {} each",
        count(planned.jobs, "job", "jobs"),
        planned.executor,
        batches(planned.batches_per_job)
    ))
}

/// Returns what happens to a stage, in one line.
fn headline(style: Style, stage: &StagePlan) -> String {
    if let Some(problem) = &stage.problem {
        return format!("{} {}", style.bad("cannot run:"), visible(problem));
    }
    if let Some(why) = &stage.blocked {
        return format!("{} {}", style.warn("out of date:"), visible(why));
    }
    let all = stage.batches();
    let will = stage.will.len() as u64;
    let may = stage.may.len() as u64;
    let judge = stage.judge.len() as u64;
    let mut parts = Vec::new();
    if !stage.altered.is_empty() {
        let altered = stage.altered.len() as u64;
        let files = count(altered, "modified file", "modified files");
        parts.push(style.bad(format!("stops the run: {files}")));
    }
    if !stage.missing.is_empty() {
        let sent = stage.missing.iter().filter(|it| it.sent).count() as u64;
        let refused = stage.missing.iter().filter(|it| it.code.is_some()).count() as u64 - sent;
        let missing = stage.missing.len() as u64 - refused - sent;
        for (some, why) in [
            (missing, "a file is missing or cannot be used"),
            (refused, "a precondition does not hold"),
            (sent, "a request is not sent again"),
        ] {
            let text = match (some, all) {
                (0, _) => continue,
                (_, 1) => format!("fails: {why}"),
                _ => format!("{}: {why}", count(some, "batch fails", "batches fail")),
            };
            parts.push(style.bad(text));
        }
    }
    if will > 0 {
        let text = match (all, will) {
            (1, _) => "will run".to_owned(),
            _ if all == will => format!("will run {}", batches(will)),
            _ => format!("will run {} of {}", grouped(will), batches(all)),
        };
        parts.push(style.warn(text));
    }
    if may > 0 {
        let text = if all == 1 {
            "may run".to_owned()
        } else {
            format!("may run {}", batches(may))
        };
        parts.push(style.warn(text));
    }
    if !stage.restore.is_empty() {
        let restore = batches(stage.restore.len() as u64);
        parts.push(format!("restores {restore} from quarantine"));
    }
    if judge > 0 {
        parts.push(if all == 1 {
            "is revalidated".to_owned()
        } else {
            format!("revalidates {}", batches(judge))
        });
    }
    if stage.reused > 0 {
        parts.push(if all == 1 {
            style.good("up to date")
        } else {
            style.good(format!("{} up to date", grouped(stage.reused)))
        });
    }
    let set_apart = (stage.unapproved.len() + stage.unpaid.len()) as u64;
    let waits = set_apart + stage.awaits.as_ref().map_or(0, |awaits| awaits.batches);
    let waits_for = [
        stage.approval.as_ref().map(needs_approval),
        stage.money.as_ref().map(needs_money),
        stage.awaits.as_ref().map(awaits),
    ];
    parts.extend(waits_for.into_iter().flatten().map(|text| style.warn(text)));
    if stage.left > waits {
        parts.push(format!("{} not selected", grouped(stage.left - waits)));
    }
    if !stage.retire.is_empty() {
        parts.push(format!("{} retired", batches(stage.retire.len() as u64)));
    }
    if !stage.certain && parts.is_empty() {
        return style.warn("depends on the outputs of earlier stages");
    }
    if parts.is_empty() {
        parts.push("no batches".to_owned());
    }
    if stage.checkpoint {
        parts.push(style.warn("the checkpoint is written"));
    }
    let says = |batches: Option<u64>| batches == Some(0);
    if !stage.certain
        && !says(stage.awaits.as_ref().map(|awaits| awaits.batches))
        && !says(stage.approval.as_ref().map(|approval| approval.batches))
        && !says(stage.money.as_ref().map(|money| money.batches))
    {
        parts.push("more depend on the outputs of earlier stages".to_owned());
    }
    parts.join(", ")
}

/// Returns the lines below a headline: reasons, with their batches.
fn reasons(style: Style, stage: &StagePlan) -> Vec<String> {
    let mut groups = Groups::default();
    for will in stage
        .will
        .iter()
        .chain(&stage.unapproved)
        .chain(&stage.unpaid)
    {
        for why in &will.reasons {
            groups.add(&will.batch, class(why), reason(why));
        }
    }
    for may in &stage.may {
        for why in &may.reasons {
            groups.add(&may.batch, class(why), reason(why));
        }
    }
    for judge in &stage.judge {
        for changed in &judge.changes {
            let text = format!("revalidated: {}", change(changed));
            groups.add(&judge.batch, Class::Fact(changed.fact.kind), text);
        }
    }
    let mut lines = groups.lines(style);
    lines.extend(conditions(stage));
    for missing in stage.missing.iter().take(MISSING) {
        let batch = if missing.batch.is_empty() {
            String::new()
        } else {
            format!("{}: ", missing.batch)
        };
        let code = missing.code.iter().map(|code| format!("{code}: "));
        let code: String = code.collect();
        let line = format!("{batch}{code}{}", missing.why);
        lines.push(visible(&line).into_owned());
    }
    if stage.missing.len() > MISSING {
        let more = stage.missing.len() - MISSING;
        lines.push(format!("and {more} more (`--json` has all)"));
    }
    for file in &stage.altered {
        let what = match (&file.recorded, file.pinned) {
            (None, _) => "untracked: Milepost did not write it".to_owned(),
            (Some(_), true) => "accepted by hand, but out of date".to_owned(),
            (Some(recorded), false) => {
                format!("modified ({} → {})", recorded.short(), file.found.short())
            }
        };
        lines.push(format!("{}: {what}", visible(&file.path)));
    }
    if !stage.restore.is_empty() {
        let names = some_of(stage.restore.iter().map(String::as_str), NAMED);
        lines.push(format!("restored from quarantine: {names}"));
    }
    if !stage.retire.is_empty() {
        let names = some_of(stage.retire.iter().map(String::as_str), NAMED);
        lines.push(format!(
            "no longer produced, outputs go to quarantine: {names}"
        ));
    }
    lines.extend(retires(&stage.retires.iter().collect::<Vec<_>>()));
    lines
}

/// Returns the conditions of batches that may run, grouped by earlier stage.
fn conditions(stage: &StagePlan) -> Vec<String> {
    let mut lines = Vec::new();
    let all = || stage.may.iter().flat_map(|may| &may.conditions);
    let mut stages: Vec<&str> = Vec::new();
    for condition in all() {
        if let Condition::OutputChanges { stage, .. } | Condition::ItemChanges { stage, .. } =
            condition
            && !stages.contains(&stage.as_str())
        {
            stages.push(stage);
        }
    }
    let mut seen = BTreeSet::new();
    let others = all().filter(|condition| {
        let by_file = matches!(
            condition,
            Condition::OutputChanges { .. } | Condition::ItemChanges { .. }
        );
        !by_file
    });
    let others = others.map(|one| format!("if {}", condition(one)));
    lines.extend(others.filter(|line| seen.insert(line.clone())));
    for from in stages {
        let mut seen = BTreeSet::new();
        let paths: Vec<&str> = all()
            .filter_map(|condition| match condition {
                Condition::OutputChanges { stage, path } if stage == from && seen.insert(path) => {
                    Some(path.as_str())
                }
                _ => None,
            })
            .collect();
        if !paths.is_empty() {
            lines.push(format!("if {from} changes {}", files(&paths)));
        }
        let mut seen = BTreeSet::new();
        let lists: Vec<&str> = all()
            .filter_map(|condition| match condition {
                // A file that batches read as a whole is listed above.
                Condition::ItemChanges { stage, path }
                    if stage == from && !paths.contains(&path.as_str()) && seen.insert(path) =>
                {
                    Some(path.as_str())
                }
                _ => None,
            })
            .collect();
        if !lists.is_empty() {
            lines.push(format!("if {from} changes the items in {}", files(&lists)));
        }
    }
    lines
}

/// Returns one or two files by name, more by their number and folder.
fn files(paths: &[&str]) -> String {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    match paths {
        [] | [_] | [_, _] => visible(&paths.join(" or ")).into_owned(),
        [first, rest @ ..] => {
            let number = grouped(paths.len() as u64);
            match folder(first) {
                Some(shared)
                    if rest
                        .iter()
                        .all(|path| folder(path).as_ref() == Some(&shared)) =>
                {
                    format!("any of {number} files in {}", visible(&shared))
                }
                _ => format!("any of {number} files, such as {}", visible(first)),
            }
        }
    }
}

/// Returns what batches would start, or ask an agent, first.
fn first_actions(style: Style, stage: &StagePlan) -> Vec<String> {
    let mut lines = Vec::new();
    for first in &stage.first {
        let text = match (&first.program, &first.agent, &first.prompt) {
            (Some(program), ..) => notice::command(style, &stage.stage, &first.batch, program),
            (None, Some(agent), Some(prompt)) => {
                notice::asks(style, &stage.stage, &first.batch, agent, prompt)
            }
            _ => continue,
        };
        lines.extend(text.lines().map(str::to_owned));
    }
    let more = stage.will.len().saturating_sub(stage.looked_at);
    if more > 0 && !lines.is_empty() {
        lines.push(format!(
            "… and {} more (`-vv` shows all)",
            grouped(more as u64)
        ));
    }
    lines
}

fn ways_on(style: Style, plan: &Plan, stage: &StagePlan, invocation: &Invocation) -> Vec<String> {
    if stage.altered.is_empty() {
        return Vec::new();
    }
    let altered = stage.altered.iter();
    let paths: Vec<&str> = altered.map(|file| file.path.as_str()).collect();
    let next_steps = next_steps::after_altered(
        &stage.stage,
        stage.number,
        &paths,
        &plan.workspace,
        invocation,
    );
    next_steps::lines(&next_steps, "", &|text| style.code(text))
        .iter()
        .map(|line| line.trim_start().to_owned())
        .collect()
}
