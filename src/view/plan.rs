//! What a run would do, in words: stage by stage, with the reasons.

use super::call::Call;
use super::groups::{Class, Groups, class};
use super::paint::Paint;
use super::params::notes;
use super::reason::{change, condition, reason};
use super::ways;
use super::words::{at_most, awaits, batches, count, grouped, some_of};
use milepost_core::model::reason::Condition;
use milepost_engine::ops::plan::{Asks, Basis, Plan, RetiredFile, StagePlan};
use std::collections::BTreeSet;

/// How many batches or files are named.
pub(crate) const NAMED: usize = 5;

/// Files of a stage that nothing makes any more and that are listed.
const RETIRED: usize = 20;

/// The plan.
pub(crate) fn text(paint: Paint, plan: &Plan, call: &Call) -> String {
    let place = paint.dim(format!("in {}", call.near(&plan.workspace)));
    let mut lines = vec![format!("{} {place}", paint.strong(&plan.project))];
    for warning in &plan.warnings {
        lines.push(format!("{} {warning}", paint.warn("warning:")));
    }
    lines.extend(notes(paint, &plan.stored, call));
    for stage in &plan.forgotten {
        lines.extend(forgotten(paint, plan, stage));
    }
    let stages: Vec<&StagePlan> = plan.stages.iter().filter(|stage| !stage.skipped).collect();
    lines.push(String::new());
    lines.extend(stage_lines(paint, plan, &stages, call));
    lines.push(String::new());
    lines.push(conclusion(paint, plan, &stages, call));
    lines.join("\n") + "\n"
}

/// What a run does, and what hinders it: the stages of which there is something to say, with the reasons.
pub(crate) fn changes(paint: Paint, plan: &Plan, call: &Call) -> String {
    let mut lines: Vec<String> = plan
        .forgotten
        .iter()
        .flat_map(|stage| forgotten(paint, plan, stage))
        .collect();
    let says = |stage: &&StagePlan| {
        !stage.skipped
            && (!stage.is_idle()
                || stage.checkpoint
                || !stage.altered.is_empty()
                || stage.blocked.is_some())
    };
    let stages: Vec<&StagePlan> = plan.stages.iter().filter(says).collect();
    lines.extend(stage_lines(paint, plan, &stages, call));
    lines.join("\n")
}

fn forgotten(paint: Paint, plan: &Plan, stage: &str) -> Vec<String> {
    let name = paint.strong(stage);
    let mut lines = vec![format!(
        "{name} is no longer declared: its outputs go to quarantine"
    )];
    let files: Vec<&RetiredFile> = plan
        .retires
        .iter()
        .filter(|file| file.stage == stage)
        .collect();
    lines.extend(retires(&files).into_iter().map(|line| format!("  {line}")));
    lines
}

/// The files that nothing makes any more, a line each up to a limit.
fn retires(files: &[&RetiredFile]) -> Vec<String> {
    let shown = files.iter().take(RETIRED);
    let mut lines: Vec<String> = shown
        .map(|file| format!("retires {}: it goes to quarantine", file.path))
        .collect();
    if files.len() > RETIRED {
        let more = (files.len() - RETIRED) as u64;
        lines.push(format!("retires {} more", count(more, "file", "files")));
    }
    lines
}

/// A line for each stage, and below it why.
fn stage_lines(paint: Paint, plan: &Plan, stages: &[&StagePlan], call: &Call) -> Vec<String> {
    let names = stages.iter().map(|stage| stage.stage.chars().count());
    let width = names.max().unwrap_or(0);
    let mut lines = Vec::new();
    for stage in stages {
        let name = paint.strong(format!("{:width$}", stage.stage));
        lines.push(format!(
            "{:>3} {name}  {}",
            stage.number,
            headline(paint, stage)
        ));
        let below = reasons(paint, stage)
            .into_iter()
            .chain(asks(stage))
            .chain(ways_on(paint, plan, stage, call));
        lines.extend(below.map(|line| format!("    {:width$}  {line}", "")));
    }
    lines
}

/// What becomes of a stage, in one line.
fn headline(paint: Paint, stage: &StagePlan) -> String {
    if let Some(problem) = &stage.problem {
        return format!("{} {problem}", paint.bad("cannot run:"));
    }
    if let Some(why) = &stage.blocked {
        return format!("{} {why}", paint.warn("blocked:"));
    }
    let all = stage.batches();
    let (will, may, judge) = (
        stage.will.len() as u64,
        stage.may.len() as u64,
        stage.judge.len() as u64,
    );
    let mut parts = Vec::new();
    if !stage.altered.is_empty() {
        let files = count(
            stage.altered.len() as u64,
            "modified file",
            "modified files",
        );
        parts.push(paint.bad(format!("stops the run: {files}")));
    }
    if !stage.missing.is_empty() {
        let refused = stage.missing.iter().filter(|it| it.code.is_some()).count() as u64;
        let missing = stage.missing.len() as u64 - refused;
        for (some, one, many) in [
            (missing, "its input is missing", "their input is missing"),
            (
                refused,
                "a precondition does not hold",
                "a precondition does not hold",
            ),
        ] {
            let text = match (some, all) {
                (0, _) => continue,
                (_, 1) => format!("fails: {one}"),
                (some, _) => format!("{} fail: {many}", batches(some)),
            };
            parts.push(paint.bad(text));
        }
    }
    if will > 0 {
        let text = match (all, will) {
            (1, _) => "will run".to_owned(),
            _ if all == will => format!("will run {}", batches(will)),
            _ => format!("will run {} of {}", grouped(will), batches(all)),
        };
        parts.push(paint.warn(text));
    }
    if may > 0 {
        let text = if all == 1 {
            "may run".to_owned()
        } else {
            format!("may run {}", batches(may))
        };
        parts.push(paint.warn(text));
    }
    if judge > 0 {
        parts.push(if all == 1 {
            "is validated again".to_owned()
        } else {
            format!("validates {} again", batches(judge))
        });
    }
    if stage.reused > 0 {
        parts.push(if all == 1 {
            paint.good("up to date")
        } else {
            paint.good(format!("{} up to date", grouped(stage.reused)))
        });
    }
    let waits = stage.awaits.as_ref().map_or(0, |awaits| awaits.batches);
    if let Some(awaited) = &stage.awaits {
        parts.push(paint.warn(awaits(awaited)));
    }
    if stage.left > waits {
        parts.push(format!("{} not selected", grouped(stage.left - waits)));
    }
    if !stage.retire.is_empty() {
        parts.push(format!("{} retired", batches(stage.retire.len() as u64)));
    }
    if !stage.certain && parts.is_empty() {
        return paint.warn("depends on the outputs of earlier stages");
    }
    if parts.is_empty() {
        parts.push("no batches".to_owned());
    }
    if stage.checkpoint {
        parts.push(paint.warn("the checkpoint is written"));
    }
    if !stage.certain
        && stage
            .awaits
            .as_ref()
            .is_none_or(|awaits| awaits.batches > 0)
    {
        parts.push("more depend on the outputs of earlier stages".to_owned());
    }
    parts.join(", ")
}

/// The lines below a headline: why, and which batches.
fn reasons(paint: Paint, stage: &StagePlan) -> Vec<String> {
    let mut groups = Groups::default();
    for will in &stage.will {
        for why in &will.reasons {
            groups.add(&will.batch, class(why), reason(why));
        }
    }
    for judge in &stage.judge {
        for changed in &judge.changes {
            let text = format!("validated again: {}", change(changed));
            groups.add(&judge.batch, Class::Fact(changed.fact.kind), text);
        }
    }
    let mut lines = groups.lines(paint);
    lines.extend(conditions(stage));
    for missing in stage.missing.iter().take(NAMED) {
        let batch = if missing.batch.is_empty() {
            String::new()
        } else {
            format!("{}: ", missing.batch)
        };
        let code = missing.code.iter().map(|code| format!("{code}: "));
        let code: String = code.collect();
        lines.push(format!("{batch}{code}{}", missing.why));
    }
    if stage.missing.len() > NAMED {
        lines.push(format!("and {} more", stage.missing.len() - NAMED));
    }
    for file in &stage.altered {
        let what = match (&file.recorded, file.pinned) {
            (None, _) => "untracked: Milepost did not write it".to_owned(),
            (Some(_), true) => "accepted by hand, but out of date".to_owned(),
            (Some(recorded), false) => {
                format!("modified ({} → {})", recorded.short(), file.found.short())
            }
        };
        lines.push(format!("{}: {what}", file.path));
    }
    if !stage.retire.is_empty() {
        let names = some_of(stage.retire.iter().map(String::as_str), NAMED);
        lines.push(format!("no longer made, outputs go to quarantine: {names}"));
    }
    lines.extend(retires(&stage.retires.iter().collect::<Vec<_>>()));
    lines
}

/// What a stage asks of agents, and what that costs.
fn asks(stage: &StagePlan) -> Vec<String> {
    let mut lines = Vec::new();
    for (asks, lead) in [(&stage.asks, "asks"), (&stage.may_ask, "may ask")] {
        let Some(asks) = asks else { continue };
        let who = asks.agents.join(", ");
        let kept = match asks.kept {
            0 => String::new(),
            kept => format!(", {} kept", count(kept, "answer is", "answers are")),
        };
        if asks.calls == 0 && asks.unknown == 0 {
            lines.push(format!("{lead} {who} nothing{kept}"));
            continue;
        }
        let mut parts = Vec::new();
        if asks.calls > 0 {
            let calls = count(asks.calls, "call", "calls");
            let questions = if asks.questions == asks.calls {
                String::new()
            } else {
                let questions = count(asks.questions, "question", "questions");
                format!(" with {questions}")
            };
            let more = at_most(asks.calls, asks.iterations, asks.most_calls);
            parts.push(format!("{calls}{questions}{more}{kept}"));
        }
        if asks.unknown > 0 {
            let why = asks.why.as_deref().unwrap_or_default();
            let batches = batches(asks.unknown);
            parts.push(format!("what {batches} will ask is not known yet: {why}"));
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
    let of_first = match asks.iterations {
        Some(_) => " in the first iteration",
        None => "",
    };
    match (asks.cost, asks.reserved) {
        (None, None) => format!("{tokens}{of_first}, cost unknown"),
        (None, Some(reserved)) => {
            format!("{tokens}{of_first}; a budget reserves {reserved} for these calls")
        }
        (Some(cost), Some(reserved)) if reserved > cost => {
            format!("{tokens}{of_first}, {cost}; a budget reserves {reserved} for these calls")
        }
        (Some(cost), _) => format!("{tokens}{of_first}, {cost}"),
    }
}

fn basis(basis: Basis) -> String {
    match basis {
        Basis::Declared => "from [estimate]".to_owned(),
        Basis::Measured(1) => "based on 1 earlier call".to_owned(),
        Basis::Measured(calls) => format!("based on {} earlier calls", grouped(calls)),
        Basis::Assumed(tokens) => format!("assuming {} tokens per answer", grouped(tokens)),
    }
}

/// What must come true for batches that may run: by the stage that it depends on.
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
                // A file that batches read besides is told already.
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
    if all().any(|condition| matches!(condition, Condition::NotValid)) {
        lines.push(format!("if {}", condition(&Condition::NotValid)));
    }
    lines
}

/// One or two files by name, more by their number and the folder that they lie in.
fn files(paths: &[&str]) -> String {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    match paths {
        [] | [_] | [_, _] => paths.join(" or "),
        [first, rest @ ..] => {
            let number = grouped(paths.len() as u64);
            match folder(first) {
                Some(shared)
                    if rest
                        .iter()
                        .all(|path| folder(path).as_ref() == Some(&shared)) =>
                {
                    format!("any of {number} files in {shared}")
                }
                _ => format!("any of {number} files, such as {first}"),
            }
        }
    }
}

fn ways_on(paint: Paint, plan: &Plan, stage: &StagePlan, call: &Call) -> Vec<String> {
    if stage.altered.is_empty() {
        return Vec::new();
    }
    let paths: Vec<&str> = stage
        .altered
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let ways = ways::after_altered(&stage.stage, stage.number, &paths, &plan.workspace, call);
    ways::lines(&ways, "", &|text| paint.code(text))
        .iter()
        .map(|line| line.trim_start().to_owned())
        .collect()
}

fn conclusion(paint: Paint, plan: &Plan, stages: &[&StagePlan], call: &Call) -> String {
    let sum = |of: &dyn Fn(&StagePlan) -> usize| {
        stages.iter().map(|stage| of(stage)).sum::<usize>() as u64
    };
    let (will, may) = (
        sum(&|stage| stage.will.len()),
        sum(&|stage| stage.may.len()),
    );
    let judge = sum(&|stage| stage.judge.len());
    let uncertain = stages.iter().any(|stage| !stage.certain);
    let forgotten = plan.forgotten.len() as u64;
    let retire = sum(&|stage| stage.retire.len());
    let wrong = sum(&|stage| {
        usize::from(stage.problem.is_some()) + stage.altered.len() + stage.missing.len()
    });
    let waits = stages.iter().any(|stage| stage.awaits.is_some());
    let blocked = stages.iter().any(|stage| stage.blocked.is_some());
    let checkpoints = sum(&|stage| usize::from(stage.checkpoint));
    let nothing = checkpoints + will + may + judge + retire + wrong + forgotten == 0;
    if nothing && waits {
        let code = |text: &str| paint.code(text);
        let mut lines = vec!["nothing can run until these questions are answered".to_owned()];
        lines.extend(ways::lines(&[ways::outside(call)], "next", &code));
        return lines.join("\n");
    }
    if nothing && !uncertain && !blocked {
        if stages.iter().any(|stage| stage.left > 0) {
            return format!("{} nothing is selected", paint.good("nothing to do:"));
        }
        let why = match stages {
            [one] => format!("up to date: {}, nothing changed", one.stage),
            all => format!("up to date: {} stages, nothing changed", all.len()),
        };
        return paint.good(why);
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
    if judge > 0 {
        parts.push(format!("{} validated again", batches(judge)));
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
        .filter(|_| will + may + judge + wrong == 0)
    {
        let by = stage.blocked_by.as_ref();
        // What was asked for stands among the flags, and is too little.
        let plain = Call {
            flags: Vec::new(),
            ..call.clone()
        };
        let ways = ways::after_blocked(&stage.stage, by, &plan.workspace, &plain);
        if let [(command, _)] = ways.as_slice() {
            return format!(
                "nothing can run; to run {} with the stages before it: {}",
                stage.stage,
                paint.code(command)
            );
        }
        let code = |text: &str| paint.code(text);
        let mut lines = vec!["nothing can run".to_owned()];
        lines.extend(ways::lines(&ways, "next", &code));
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
            paint.code(call.run(&[]))
        );
    }
    parts.join(", ")
}
