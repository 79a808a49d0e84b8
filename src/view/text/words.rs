//! Numbers, durations and lists in words.

use milepost_core::base::duration::show_duration;
use milepost_core::base::visible::visible;
pub(crate) use milepost_core::base::words::{count, grouped};
use milepost_core::expr::shell::invoked_script;
pub(crate) use milepost_core::plan::expand::batch_name as target;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::plan::{AwaitedApproval, AwaitedMoney, Awaits};
use std::borrow::Cow;
use std::time::Duration;

/// How many names a line lists before it counts the rest.
pub(crate) const NAMED: usize = 5;

/// Returns `1 batch`, `7 batches`.
pub(crate) fn batches(number: u64) -> String {
    count(number, "batch", "batches")
}

/// Returns the highest number of calls with every retry and iteration, as continuation of the expected number.
pub(crate) fn at_most(calls: u64, iterations: Option<u64>, most: Option<u64>) -> String {
    match (iterations, most) {
        (None, Some(most)) if most <= calls => String::new(),
        (None, Some(most)) => format!(", at most {} with every retry", grouped(most)),
        (None, None) => ", no bound".to_owned(),
        (Some(iterations), most) => {
            let iterations = count(iterations, "iteration", "iterations");
            let more = match most {
                Some(most) => format!("at most {} in {iterations} with every retry", grouped(most)),
                None => format!("no bound for {iterations}"),
            };
            format!(" in the first iteration, {more}")
        }
    }
}

/// Returns `waiting for claude: 6 batches, 140 questions`.
pub(crate) fn awaits(awaits: &Awaits) -> String {
    let lead = format!("waiting for {}", awaits.agents.join(" and "));
    match (awaits.batches, awaits.questions) {
        (0, _) => format!("{lead}; the questions depend on earlier stages"),
        (many, 0) => format!("{lead}: {}", batches(many)),
        (many, questions) => {
            let questions = count(questions, "question", "questions");
            format!("{lead}: {}, {questions}", batches(many))
        }
    }
}

/// Returns `waiting for approval by reviewer: 12 batches`.
pub(crate) fn approval(approval: &AwaitedApproval) -> String {
    approval_of("waiting for", approval)
}

/// Returns `needs approval by reviewer: 12 batches`.
pub(crate) fn needs_approval(approval: &AwaitedApproval) -> String {
    approval_of("needs", approval)
}

fn approval_of(lead: &str, approval: &AwaitedApproval) -> String {
    let by = visible(&approval.by);
    match approval.batches {
        0 => format!("{lead} approval by {by}, once earlier stages are complete"),
        many => format!("{lead} approval by {by}: {}", batches(many)),
    }
}

/// Returns `2 batches wait for budget: …`, with the reason.
pub(crate) fn needs_money(money: &AwaitedMoney) -> String {
    let why = visible(&money.why);
    match money.batches {
        0 => format!("waits for budget once earlier stages are complete: {why}"),
        1 => format!("1 batch waits for budget: {why}"),
        many => format!("{} wait for budget: {why}", batches(many)),
    }
}

/// Formats a size: `812 bytes`, `1.2 kB`, `3.4 MB`.
pub(crate) fn bytes(size: u64) -> String {
    let mut scaled = size as f64;
    let mut units = ["kB", "MB", "GB", "TB"].into_iter();
    let mut unit = None;
    // A value that would round to 1000.0 has the next unit.
    while scaled >= 999.95 {
        let Some(next) = units.next() else { break };
        (scaled, unit) = (scaled / 1000.0, Some(next));
    }
    match unit {
        None => count(size, "byte", "bytes"),
        Some(unit) => format!("{scaled:.1} {unit}"),
    }
}

/// Formats a duration for people.
pub(crate) fn seconds(seconds: f64) -> String {
    show_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Lists the first `most` names, and counts the rest: `a, b and 12 more`.
pub(crate) fn some_of<'a>(names: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let names: Vec<Cow<'_, str>> = names.into_iter().map(visible).collect();
    // A single name takes no more room than its count.
    let shown = if names.len() == most + 1 {
        names.len()
    } else {
        most.min(names.len())
    };
    let left = names.len() - shown;
    if left > 0 {
        format!(
            "{} and {} more",
            names[..shown].join(", "),
            grouped(left as u64)
        )
    } else {
        names.join(", ")
    }
}

/// Returns `stage/batch`, or the stage if it has only one batch, to be shown.
pub(crate) fn place(stage: &str, batch: &str) -> String {
    visible(&target(stage, batch)).into_owned()
}

/// Returns a text of at most this many characters, of which the last is `…` if it was longer.
pub(crate) fn shortened(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{start}…")
}

/// Returns program and arguments as a line for a shell; of a script that a step declares, the script.
pub(crate) fn shell_command(program: &[String]) -> String {
    if let Some(script) = invoked_script(program) {
        return script.to_owned();
    }
    let words = program.iter().map(|word| shell_word(word));
    words.collect::<Vec<_>>().join(" ")
}

/// Indents each line by this many spaces.
pub(crate) fn indented(text: &str, blanks: usize) -> String {
    let margin = " ".repeat(blanks);
    text.lines()
        .flat_map(|line| [margin.as_str(), line, "\n"])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_read_as_people_write_them() {
        assert_eq!(batches(1), "1 batch");
        assert_eq!(batches(0), "0 batches");
        assert_eq!(batches(1_234_567), "1,234,567 batches");
        let sizes = [0, 1, 999, 1000, 999_949, 999_950, 3_400_000_000].map(bytes);
        let shown = [
            "0 bytes",
            "1 byte",
            "999 bytes",
            "1.0 kB",
            "999.9 kB",
            "1.0 MB",
            "3.4 GB",
        ];
        assert_eq!(sizes, shown);
        assert_eq!(some_of(["a", "b", "c"], 2), "a, b, c");
        assert_eq!(some_of(["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(some_of([], 2), "");
    }
}
