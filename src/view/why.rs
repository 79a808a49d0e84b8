//! `why` as text: first the decision, then its reasons.

use crate::view::calls;
use crate::view::text::overrides::accepted;
use crate::view::text::reason::{change, condition, reason};
use crate::view::text::table::{Side, table, time};
use crate::view::text::words::{batches, count, grouped, place, seconds, some_of};
use milepost_core::base::visible::visible;
use milepost_engine::ops::why::{BatchWhy, FileState, InputFile, MadeBy, StageWhy, Verdict, Why};
use milepost_engine::ops::why::{FileWhy, Origin};
use std::borrow::Cow;

/// The most batches of a stage that are listed.
const LISTED: usize = 20;

/// The most inputs of a batch that are listed.
const INPUTS: usize = 20;

/// Returns the explanation of a stage, a batch or a file.
pub fn why(data: &Why) -> String {
    match data {
        Why::Stage(stage) => of_stage(stage),
        Why::Batch(batch) => of_batch(batch),
        Why::File(file) => of_file(file),
    }
}

fn of_stage(why: &StageWhy) -> String {
    let mut text = format!("stage {} {}", why.number, why.stage);
    if let Some(description) = &why.description {
        text.push_str(&format!(": {}", visible(description)));
    }
    text.push('\n');
    if let Some(problem) = &why.problem {
        text.push_str(&format!("its batches are unknown: {}\n", visible(problem)));
        return text;
    }
    text.push_str(&format!(
        "{}, {} up to date\n",
        batches(why.batches),
        grouped(why.reused)
    ));
    for batch in why.others.iter().take(LISTED) {
        text.push_str(&format!(
            "\n{}: {}\n",
            place(&why.stage, &batch.batch),
            verdict(&batch.verdict)
        ));
        text.push_str(&lines(&batch.verdict));
    }
    if why.others.len() > LISTED {
        let more = (why.others.len() - LISTED) as u64;
        text.push_str(&format!(
            "\nand {} more (`--json` has all)\n",
            batches(more)
        ));
    }
    if !why.gone.is_empty() {
        let some = some_of(why.gone.iter().map(String::as_str), 5);
        text.push_str(&format!(
            "\nno longer produced, its outputs go to quarantine: {some}\n"
        ));
    }
    text
}

/// Returns the decision on a batch, then a line for each reason.
pub(crate) fn decision(data: &Verdict) -> String {
    format!("{}\n{}", verdict(data), lines(data))
}

fn verdict(verdict: &Verdict) -> Cow<'static, str> {
    let word = match verdict {
        Verdict::Will { .. } => "will run",
        Verdict::Unapproved { by, .. } => {
            return format!("waiting for approval by {}", visible(by)).into();
        }
        Verdict::Waits { agent, .. } => {
            return format!("waiting for the external agent {agent}").into();
        }
        Verdict::UpToDate => "up to date: inputs and outputs match the record",
        Verdict::Restore => "its outputs are restored from quarantine, without a run",
        Verdict::Revalidate { .. } => "outputs are revalidated, without a run",
        Verdict::May { .. } => "may run",
        Verdict::Modified { .. } => "stops the run: an output was modified by hand",
        Verdict::Impossible { .. } => "cannot run",
    };
    word.into()
}

/// Returns a line for each reason.
fn lines(verdict: &Verdict) -> String {
    let list: Vec<String> = match verdict {
        Verdict::Will { reasons }
        | Verdict::Unapproved { reasons, .. }
        | Verdict::Waits { reasons, .. } => reasons.iter().map(reason).collect(),
        Verdict::UpToDate | Verdict::Restore => Vec::new(),
        Verdict::Revalidate { changes } => changes.iter().map(change).collect(),
        Verdict::May { conditions } => {
            let conditions = conditions.iter().map(condition);
            conditions
                .map(|condition| format!("if {condition}"))
                .collect()
        }
        Verdict::Modified { files } => files
            .iter()
            .map(|file| match (&file.recorded, file.pinned) {
                (_, true) => format!("{} was accepted by hand, but is out of date", file.path),
                (Some(recorded), _) => format!(
                    "{} is recorded as {}…, but is {}…",
                    file.path,
                    recorded.short(),
                    file.found.short()
                ),
                (None, _) => format!("{} is untracked: Milepost did not write it", file.path),
            })
            .collect(),
        Verdict::Impossible { why } => vec![why.clone()],
    };
    list.iter()
        .map(|line| format!("  {}\n", visible(line)))
        .collect()
}

fn of_batch(why: &BatchWhy) -> String {
    let mut text = format!(
        "{} {}",
        place(&why.stage, &why.batch),
        decision(&why.verdict)
    );
    match &why.made {
        Some(made) => text.push_str(&made_by(made)),
        None => text.push_str("\nnothing is recorded yet\n"),
    }
    for failed in why.failed.iter().take(LISTED) {
        let keys = some_of(failed.keys.iter().map(String::as_str), 5);
        text.push_str(&format!("  without {keys}: {}\n", failed.outcome));
        for detail in &failed.outcome.details {
            text.push_str(&format!("    {}\n", visible(detail)));
        }
    }
    if why.failed.len() > LISTED {
        let more = (why.failed.len() - LISTED) as u64;
        text.push_str(&format!(
            "  and {} more (`--json` has all)\n",
            grouped(more)
        ));
    }
    if let Some(folder) = &why.quarantine {
        text.push_str(&format!("  the invalid answer is in {}\n", visible(folder)));
    }
    if let Some(asked) = &why.asked {
        text.push_str(&calls::batch_calls(asked));
    }
    text.push_str("\ninputs\n");
    let rows: Vec<Vec<String>> = why.inputs.iter().take(INPUTS).map(input).collect();
    text.push_str(&indented_table(&[Side::Left; 3], &rows));
    if why.inputs.len() > INPUTS {
        let more = (why.inputs.len() - INPUTS) as u64;
        text.push_str(&format!("  and {} more\n", grouped(more)));
    }
    if !why.outputs.is_empty() {
        text.push_str("\noutputs\n");
        let rows: Vec<Vec<String>> = why
            .outputs
            .iter()
            .map(|file| {
                vec![
                    file.path.clone(),
                    format!("{}…", file.digest.short()),
                    format!("{} bytes", grouped(file.size)),
                    state(file.state).to_owned(),
                ]
            })
            .collect();
        let sides = [Side::Left, Side::Left, Side::Right, Side::Left];
        text.push_str(&indented_table(&sides, &rows));
    }
    for (title, facts) in [
        ("built from", &why.made_from),
        ("validated by", &why.judged_by),
    ] {
        if facts.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{title}\n"));
        let rows: Vec<Vec<String>> = facts
            .iter()
            .map(|(fact, value)| vec![fact.clone(), short(value)])
            .collect();
        text.push_str(&indented_table(&[Side::Left; 2], &rows));
    }
    text
}

/// Returns when and how a batch was built.
pub(crate) fn made_by(made: &MadeBy) -> String {
    let when = made
        .when
        .map_or_else(String::new, |when| format!("{} ", time(when)));
    let tries = match made.attempts {
        1 => "at the first attempt".to_owned(),
        tries => format!("at attempt {tries}"),
    };
    let mut text = format!(
        "\nmade {when}by run {}, {tries}, in {}",
        made.run,
        seconds(made.seconds)
    );
    if let Some(elements) = made.elements {
        text.push_str(&format!(": {}", count(elements, "element", "elements")));
    }
    text.push('\n');
    if let Some(job) = &made.job {
        text.push_str(&format!("  {}\n", visible(&job.to_string())));
    }
    if let Some(summary) = &made.summary {
        text.push_str(&format!("  {}\n", visible(&summary.to_string())));
    }
    if let Some(outcome) = &made.placeholder {
        text.push_str(&format!(
            "  it failed and is replaced by a placeholder: {outcome}\n"
        ));
    }
    if let Some(pin) = &made.pin {
        let on = pin
            .at
            .map_or_else(String::new, |at| format!(" on {}", time(at)));
        text.push_str(&format!(
            "  modified by hand: accepted by {}{on}: {}\n",
            visible(&pin.who),
            visible(&pin.why)
        ));
        for file in &pin.files {
            let (from, to) = (file.from.short(), file.to.short());
            text.push_str(&format!(
                "    {}  {from}… → {to}…\n",
                visible(file.path.as_str())
            ));
        }
    }
    text
}

fn input(input: &InputFile) -> Vec<String> {
    let digest = match (&input.recorded, &input.present) {
        (Some(recorded), Some(present)) if recorded != present => {
            format!("{} → {}", short(recorded), short(present))
        }
        (Some(same), _) | (None, Some(same)) => short(same),
        (None, None) => String::new(),
    };
    let by = input.made_by.as_ref();
    vec![
        input.path.clone(),
        digest,
        by.map_or_else(String::new, |by| format!("made by {by}")),
    ]
}

fn state(state: FileState) -> &'static str {
    match state {
        FileState::AsMade => "unchanged",
        FileState::Accepted => "modified by hand",
        FileState::Modified => "modified",
        FileState::Deleted => "deleted",
    }
}

fn of_file(why: &FileWhy) -> String {
    let mut text = match &why.digest {
        Some(digest) => format!("{}  {}…\n", visible(&why.path), digest.short()),
        None => format!("{} does not exist\n", visible(&why.path)),
    };
    if let Some(made) = &why.made {
        let when = made
            .when
            .map_or_else(String::new, |when| format!(" {}", time(when)));
        text.push_str(&format!(
            "output `{}` of {}, made{when} by run {}: {}\n",
            visible(&made.output),
            place(&made.stage, &made.batch),
            made.run,
            match made.state {
                FileState::Accepted => "modified by hand since".to_owned(),
                FileState::AsMade => "unchanged since".to_owned(),
                FileState::Modified => format!("modified since: it was {}…", made.digest.short()),
                FileState::Deleted => "deleted since".to_owned(),
            }
        ));
        if let Some(modified) = &made.modified {
            text.push_str(&format!("modified by hand: {}\n", accepted(modified)));
        }
        if let Some(asked) = &made.asked {
            text.push_str(&calls::batch_calls(asked));
        }
        text.push_str("\nbuilt from\n");
        tree(&mut text, &why.from, why.more, 1);
    } else if why.digest.is_some() {
        text.push_str("not written by a stage\n");
    }
    if !why.read_by.is_empty() {
        text.push_str("\nread by\n");
        for reader in why.read_by.iter().take(LISTED) {
            text.push_str(&format!("  {}\n", visible(reader)));
        }
        let more = why.read_by.len().saturating_sub(LISTED) as u64 + why.more_readers;
        if more > 0 {
            text.push_str(&format!("  and {} more\n", grouped(more)));
        }
    } else if !why.declared.is_empty() {
        text.push_str(&format!(
            "declared as input of {}\n",
            visible(&why.declared.join(", "))
        ));
    }
    text
}

fn tree(text: &mut String, from: &[Origin], more: u64, depth: usize) {
    let margin = "  ".repeat(depth);
    for origin in from {
        let by = origin
            .made_by
            .as_ref()
            .map_or_else(String::new, |by| format!("  made by {}", visible(by)));
        text.push_str(&format!(
            "{margin}{}  {}{by}\n",
            visible(&origin.path),
            short(&origin.digest)
        ));
        tree(text, &origin.from, origin.more, depth + 1);
    }
    if more > 0 {
        text.push_str(&format!("{margin}and {} more\n", grouped(more)));
    }
}

/// Shortens a digest; puts other values on one line.
fn short(value: &str) -> String {
    match value.strip_prefix("sha256:") {
        Some(hex) if hex.len() > 12 => {
            let path = hex.split_once(' ').map(|(_, path)| format!("  {path}"));
            format!("{}…{}", &hex[..12], path.unwrap_or_default())
        }
        _ => value.replace('\n', " "),
    }
}

fn indented_table(sides: &[Side], rows: &[Vec<String>]) -> String {
    crate::view::text::words::indented(&table(sides, rows), 2)
}
