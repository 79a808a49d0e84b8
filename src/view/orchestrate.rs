//! Sentences for programs that orchestrate agents: what a stage or a file lacks to be complete.

use crate::view::text::words::{self, count, some_of};
use milepost_core::base::visible::visible;
use milepost_engine::ops::orchestrate::await_file::{Incomplete, WhyIncomplete};
use milepost_engine::ops::orchestrate::completion::{Completion, MissingPart};

/// Batches or files that are listed in a line.
const NAMED: usize = 5;

/// Lists what a stage lacks to be complete, a line each.
pub(crate) fn missing(completion: &Completion) -> Vec<String> {
    let lines = completion.missing.iter().flat_map(lines);
    lines.map(|line| visible(&line).into_owned()).collect()
}

fn lines(part: &MissingPart) -> Vec<String> {
    let line = match part {
        MissingPart::Problem(why) => why.clone(),
        MissingPart::Running(batches, runner) => format!(
            "{} are running, started by `{}` (run {})",
            names(batches),
            runner.command,
            runner.run_id
        ),
        MissingPart::Refused(batches) => {
            let listed = batches.iter().take(NAMED);
            let mut lines: Vec<String> = listed
                .map(|(batch, why)| format!("{batch}: {why}"))
                .collect();
            if batches.len() > NAMED {
                let more = (batches.len() - NAMED) as u64;
                let more = count(more, "more batch", "more batches");
                lines.push(format!("{more} cannot begin"));
            }
            return lines;
        }
        MissingPart::MustRun(batches, total) => of(batches, *total, "must run"),
        MissingPart::MayRun(batches, total) => of(
            batches,
            *total,
            "must run if outputs of an earlier stage change",
        ),
        MissingPart::Unvalidated(batches, total) => of(batches, *total, "must be revalidated"),
        MissingPart::Modified(files) => format!("modified by hand: {}", names(files)),
        MissingPart::Unapproved(approval) => words::approval(approval),
        MissingPart::Waiting(awaits) => words::awaits(awaits),
        MissingPart::Unpaid(money) => words::needs_money(money),
        MissingPart::Gone(batches) => format!("{} no longer exist", names(batches)),
        MissingPart::NoCheckpoint(name) => format!("`{name}` does not exist"),
        MissingPart::Partial(batches) => format!("the stage is partial: {} failed", names(batches)),
    };
    vec![line]
}

fn of(batches: &[String], total: u64, what: &str) -> String {
    let of = if total < 2 {
        String::new()
    } else {
        format!("{} of {total} batches ", batches.len())
    };
    format!("{of}{what}: {}", names(batches))
}

fn names(all: &[String]) -> String {
    some_of(all.iter().map(String::as_str), NAMED)
}

/// Explains why a file is not complete.
pub(crate) fn incomplete(incomplete: &Incomplete) -> String {
    let file = &incomplete.output_file;
    let text = match (incomplete.lack, &incomplete.marker) {
        (WhyIncomplete::Absent, _) => format!("`{file}` does not exist"),
        (WhyIncomplete::Changing, _) => format!("`{file}` is being written, or was a moment ago"),
        (WhyIncomplete::Invalid, _) => {
            let first = incomplete.violations.first();
            format!("`{file}` {}", first.map_or("is not valid", String::as_str))
        }
        (WhyIncomplete::Marker, Some(marker)) => {
            format!("`{file}` exists, but its marker `{marker}` does not")
        }
        (WhyIncomplete::Marker, None) => format!(
            "`{file}` belongs to no present batch of stage `{}`: its marker is not known",
            incomplete.stage.as_deref().unwrap_or_default()
        ),
    };
    visible(&text).into_owned()
}
