//! The summary of a run, with the next commands.

use crate::view::calls::spent;
use crate::view::run::notice::coloured;
use crate::view::text::next_steps::{self, SEND_AGAIN};
use crate::view::text::style::Style;
use crate::view::text::words::{approval, awaits, batches, count, grouped, seconds, target};
use milepost_core::base::visible::visible;
use milepost_core::model::stage_word::StageWord;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::exit_code::exit_code;
use milepost_engine::ops::run::{Report, StageReport, StageStatus};

/// The most lines of the list of outputs.
const OUTPUTS: usize = 8;

/// Returns the summary; with `quiet`, only problems. Files that were moved to quarantine are shown when that happens.
pub(crate) fn summary(
    style: Style,
    report: &Report,
    invocation: &Invocation,
    quiet: bool,
) -> String {
    let mut lines = Vec::new();
    if let Some(why) = nothing_to_do(report) {
        lines.push(style.good(why));
    } else {
        lines.extend(table(style, report, quiet));
        let word = match overall(report) {
            "held" => report.unfinished().text(),
            word => shown(word),
        };
        let joint = match exit_code(report) {
            3 | 5 => "after",
            _ => "in",
        };
        let word = match exit_code(report) {
            0 => style.good(word),
            3 | 130 => style.warn(word),
            _ => style.bad(word),
        };
        lines.push(String::new());
        lines.push(format!("{word} {joint} {}", seconds(report.seconds)));
    }
    if report.under_way > 0 {
        let many = count(
            report.under_way,
            "provider batch is in progress",
            "provider batches are in progress",
        );
        lines.push(format!("{many}: the next run collects the answers"));
    }
    if !quiet {
        lines.extend(outputs(style, report, invocation));
    }
    let code = |text: &str| style.code(text);
    lines.extend(next_steps::lines(&next(report, invocation), "next", &code));
    lines.join("\n") + "\n"
}

/// Returns a line for each stage, and for each output that was modified by hand.
fn table(style: Style, report: &Report, quiet: bool) -> Vec<String> {
    let told = |stage: &&StageReport| !quiet || stage.status != StageStatus::Complete;
    let stages: Vec<&StageReport> = report.stages.iter().filter(told).collect();
    let widths = stages.iter().map(|stage| stage.stage.chars().count());
    let name_width = widths.max().unwrap_or(0);
    let words = stages.iter().map(|stage| stage.word().text().len());
    let word_width = words.max().unwrap_or(0);
    let whats: Vec<String> = stages.iter().map(|stage| what(stage)).collect();
    let timed = |stage: &StageReport| stage.ran > 0 || !stage.failed.is_empty();
    let widths = stages.iter().zip(&whats).filter(|(stage, _)| timed(stage));
    let what_width = widths
        .map(|(_, what)| what.chars().count())
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for (stage, what) in stages.iter().zip(&whats) {
        let word = coloured(style, stage.word());
        let blanks = " ".repeat(word_width - stage.word().text().len());
        let name = style.strong(format!("{:name_width$}", stage.stage));
        let took = if timed(stage) {
            seconds(stage.seconds)
        } else {
            String::new()
        };
        let line = format!("{name}  {word}{blanks}  {what:what_width$}  {took:>9}");
        lines.push(line.trim_end().to_owned());
        for (_, file) in &stage.altered {
            let was = match (file.recorded, file.pinned) {
                (None, _) => "untracked: Milepost did not write it",
                (Some(_), true) => "accepted by hand, but out of date",
                (Some(_), false) => "modified by hand",
            };
            lines.push(format!(
                "{:name_width$}  {}  {}",
                "",
                visible(file.path.as_str()),
                style.dim(was)
            ));
        }
    }
    lines
}

/// Returns the status of the run, as JSON and the journal name it.
pub(crate) fn overall(report: &Report) -> &'static str {
    let any = |status| report.stages.iter().any(|stage| stage.status == status);
    let failed = report.stages.iter().any(|stage| stage.failure);
    if report.interrupted {
        return "interrupted";
    }
    match exit_code(report) {
        0 => "complete",
        5 => "altered",
        1 if failed => "failed",
        1 => "the verdict is no",
        _ if any(StageStatus::Partial) => "partial",
        _ => "held",
    }
}

/// Returns the word for people: JSON and the journal keep `held`, `reused`, `altered` and `the verdict is no`. What a run left may be up to date
/// by now.
pub(crate) fn shown(status: &str) -> &str {
    match status {
        "held" => "unfinished",
        "reused" => StageWord::UpToDate.text(),
        "altered" => StageWord::Modified.text(),
        "the verdict is no" => "negative verdict",
        status => status,
    }
}

/// Returns why a run had nothing to do; `None` if it did something.
fn nothing_to_do(report: &Report) -> Option<String> {
    let idle = |stage: &StageReport| {
        stage.ran == 0
            && stage.judged + stage.restored == 0
            && stage.retired == 0
            && !stage.checkpoint_rewritten
            && stage.failed.is_empty()
            && stage.altered.is_empty()
    };
    let moved = !report.quarantined.is_empty();
    if moved
        || report.interrupted
        || !report.forgotten.is_empty()
        || !report.stages.iter().all(idle)
    {
        return None;
    }
    if report.stages.is_empty() {
        return Some("nothing to do: no stage is selected".to_owned());
    }
    let whole = |stage: &StageReport| stage.status == StageStatus::Complete && stage.left == 0;
    if !report.stages.iter().all(whole) || exit_code(report) != 0 {
        return None;
    }
    Some(match report.stages.as_slice() {
        [one] => format!("up to date: {}, nothing changed", one.stage),
        all => format!("up to date: {} stages, nothing changed", all.len()),
    })
}

/// Returns what happened to the batches of a stage.
fn what(stage: &StageReport) -> String {
    if let Some(why) = &stage.why {
        return visible(why).into_owned();
    }
    let mut parts = Vec::new();
    if stage.batches == 1 {
        let word = match (stage.ran, stage.reused, stage.failed.len()) {
            (0, 0, 0) => "did not run",
            (0, 0, _) => "failed",
            (0, _, _) => "up to date",
            _ => "ran",
        };
        parts.push(word.to_owned());
    } else if stage.batches > 0 {
        let waits = waits(stage);
        let some = [
            (stage.ran, "ran"),
            (stage.reused, "up to date"),
            (stage.failed.len() as u64, "failed"),
            (stage.left - waits, "left"),
        ];
        let some: Vec<String> = some
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| {
                if number == stage.batches {
                    format!("{} {word}", batches(number))
                } else {
                    format!("{} {word}", grouped(number))
                }
            })
            .collect();
        parts.extend(some);
    } else if stage.altered.is_empty() && stage.status == StageStatus::Complete {
        parts.push("no batches".to_owned());
    }
    if stage.restored > 0 {
        parts.push(format!("{} restored", grouped(stage.restored)));
    }
    if stage.judged > 0 {
        parts.push(format!("{} revalidated", grouped(stage.judged)));
    }
    if stage.checkpoint_rewritten {
        parts.push("checkpoint written".to_owned());
    }
    if stage.retired > 0 {
        parts.push(format!("{} retired", batches(stage.retired)));
    }
    if !stage.altered.is_empty() {
        parts.push(count(
            stage.altered.len() as u64,
            "file was modified",
            "files were modified",
        ));
    }
    if let Some(elements) = stage.elements {
        parts.push(count(elements, "element", "elements"));
    }
    if stage.spent.calls > 0 {
        parts.push(spent(&stage.spent));
    }
    if let Some(why) = &stage.held {
        parts.push(format!("waiting for budget: {why}"));
    }
    parts.extend(stage.unreachable.clone());
    if let Some(awaited) = &stage.approval {
        parts.push(approval(awaited));
    }
    if let Some(waits) = &stage.awaits {
        parts.push(awaits(waits));
    }
    if stage.verdict == Some(false) {
        parts.push("negative verdict".to_owned());
    }
    visible(&parts.join(", ")).into_owned()
}

/// Returns the number of batches that wait for approval or for an external agent.
fn waits(stage: &StageReport) -> u64 {
    let unapproved = stage.approval.as_ref().map_or(0, |awaited| awaited.batches);
    let waits = stage.awaits.as_ref().map_or(0, |awaits| awaits.batches);
    (unapproved + waits).min(stage.left)
}

/// Returns true if batches wait for approval or for an external agent.
fn waits_for_others(stage: &StageReport) -> bool {
    stage.approval.is_some() || stage.awaits.is_some()
}

/// Returns the paths of the outputs.
fn outputs(style: Style, report: &Report, invocation: &Invocation) -> Vec<String> {
    let done =
        |stage: &&StageReport| matches!(stage.status, StageStatus::Complete | StageStatus::Partial);
    let done = report.stages.iter().filter(done);
    let outputs: Vec<&String> = done.flat_map(|stage| &stage.outputs).collect();
    let label = |at: usize| style.dim(format!("{:9}", if at == 0 { "outputs" } else { "" }));
    let near = |path: &str| invocation.near(&format!("{}/{path}", report.workspace));
    let shown = if outputs.len() > OUTPUTS {
        OUTPUTS - 1
    } else {
        outputs.len()
    };
    let mut lines: Vec<String> = outputs[..shown]
        .iter()
        .enumerate()
        .map(|(at, output)| format!("{}{}", label(at), visible(&near(output))))
        .collect();
    if shown < outputs.len() {
        lines.push(format!("{}and more in {}", label(shown), near("outputs")));
    }
    lines
}

/// Returns the next commands, each with what it does.
fn next(report: &Report, invocation: &Invocation) -> Vec<(String, String)> {
    let is = |status| {
        report
            .stages
            .iter()
            .find(move |stage| stage.status == status)
    };
    if let Some(stage) = is(StageStatus::Modified) {
        let paths = stage.altered.iter().map(|(_, file)| file.path.as_str());
        let paths: Vec<&str> = paths.collect();
        return next_steps::after_altered(
            &stage.stage,
            stage.number,
            &paths,
            &report.workspace,
            invocation,
        );
    }
    let mut next = Vec::new();
    let failures = || {
        report
            .stages
            .iter()
            .filter(|stage| !stage.failed.is_empty())
    };
    for stage in failures() {
        if let Some((batch, _)) = stage.failed.first() {
            let place = target(&stage.stage, batch);
            next.push((
                invocation.line(&["log", &place]),
                "show what happened".to_owned(),
            ));
        }
    }
    let mut run = |command: String, what: &str| next.push((command, what.to_owned()));
    let rest =
        report.stages.iter().any(|stage| stage.left > 0) || is(StageStatus::Blocked).is_some();
    if report.interrupted {
        run(invocation.next_run(), "continue");
    } else if failures().next().is_some() {
        let failed = failures().flat_map(|stage| &stage.failed);
        let mut failed = failed.map(|(_, outcome)| outcome.accepted.is_some());
        let is_left = failures().any(|stage| stage.left > 0);
        if failed.clone().any(|is_sent| !is_sent) {
            let what = [
                "rerun the failed batches",
                "rerun the failed batches, then continue",
            ];
            run(invocation.next_run(), what[usize::from(rest)]);
        } else if is_left {
            run(invocation.next_run(), "continue with the other batches");
        }
        if is_left && !invocation.options.keep_going {
            let mut going = invocation.clone();
            going.options.keep_going = true;
            run(going.next_run(), "the same, and continue after a failure");
        }
        for setting in &invocation.values.set {
            if let Some((name, _)) = setting.split_once('=') {
                let mut without = invocation.clone();
                without.stored = false;
                without.values.set.retain(|other| other != setting);
                without.values.unset.push(name.to_owned());
                let what = format!("run with the default of {name}");
                run(without.next_run(), &what);
            }
        }
        if failed.any(|is_sent| is_sent) {
            run(invocation.run(&["--failed"]), SEND_AGAIN);
        }
    } else if is(StageStatus::Failed).is_some() {
        // The line of the stage says what to do.
    } else if let Some(stage) = is(StageStatus::Held).filter(|stage| waits_for_others(stage)) {
        let held = report.stages.iter();
        let unapproved = held.filter(|stage| stage.approval.is_some());
        next.extend(unapproved.map(|stage| next_steps::approve(&stage.stage, invocation)));
        if report.stages.iter().any(|stage| stage.awaits.is_some()) {
            next.push(next_steps::outside(invocation));
        }
        if stage.left > waits(stage) {
            let rest = stage.left - waits(stage);
            let what = format!("run the rest: {} of {}", batches(rest), stage.stage);
            next.push((invocation.run(&[]), what));
        }
    } else if is(StageStatus::Held).is_some_and(|stage| stage.held.is_some()) {
        // Otherwise the line of the stage says what to edit: the same run would wait again.
        next.extend(next_steps::pay(invocation));
    } else if let Some(stage) = is(StageStatus::Held).filter(|stage| stage.left > 0) {
        let what = format!("run the rest: {} of {}", batches(stage.left), stage.stage);
        match report.stages.as_slice() {
            [one] => run(invocation.run(&[&one.stage]), &what),
            _ => run(invocation.run(&[]), &what),
        }
    } else if let Some(stage) = is(StageStatus::Blocked) {
        return next_steps::after_blocked(
            &stage.stage,
            stage.blocked_by.as_ref(),
            &report.workspace,
            invocation,
        );
    }
    next
}
