//! Events of a run as lines, for logs, pipes and terminals.

use crate::view::text::style::Style;
use crate::view::text::words::{batches, count, place, seconds, shell_command};
use milepost_core::base::visible::visible;
use milepost_core::model::call::{Estimated, Spent};
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage_word::StageWord;
use milepost_engine::ops::run::{
    Content, KeptFile, ProviderBatchUpdate, Removal, Repair, StageReport,
};
use std::path::PathBuf;
use std::time::Duration;

/// The most details that are shown of a failure.
const DETAILS: usize = 5;

/// The most quarantined files that are listed.
const LISTED: usize = 20;

/// A stage starts.
pub(crate) fn started(
    style: Style,
    stage: &str,
    all: u64,
    will: u64,
    about: Option<&str>,
) -> String {
    let about = about
        .map(|about| style.dim(format!("  {}", visible(about))))
        .unwrap_or_default();
    let size = match (all, will) {
        (1, 1) => "starts".to_owned(),
        _ if all == will => format!("starts: {}", batches(all)),
        _ => format!("starts: {will} of {}", batches(all)),
    };
    format!("{} {size}{about}", style.strong(stage))
}

/// Other users may read folders of prompts and answers.
pub(crate) fn open_folders(folders: &[PathBuf]) -> String {
    let named = folders.iter().map(|folder| folder.to_string_lossy());
    let named = named.collect::<Vec<_>>().join(" ");
    format!(
        "other users can read prompts and answers in {named}\nhelp: ask the owner to run `chmod 700 {named}`; if other users may read them, write \
         `permissions = \"umask\"` in milepost.toml"
    )
}

/// The run waits for another one.
pub(crate) fn waiting_for_run(command: &str, pid: u32) -> String {
    let command = visible(command);
    format!("waiting for `{command}` (process {pid}) to end")
}

/// A service starts.
pub(crate) fn service_started(style: Style, service: &str) -> String {
    format!("{} starts, a service", style.strong(service))
}

/// A program starts, as a shell would show it.
pub(crate) fn command(style: Style, stage: &str, batch: &str, program: &[String]) -> String {
    let place = if stage.is_empty() {
        visible(batch).into_owned()
    } else {
        place(stage, batch)
    };
    let text = shell_command(program);
    let lines = text
        .lines()
        .zip(std::iter::once("$").chain(std::iter::repeat(">")));
    let lines = lines.map(|(line, sign)| {
        format!(
            "{} {} {}",
            style.strong(&place),
            style.dim(sign),
            style.code(visible(line))
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The most lines of a prompt that are shown.
const PROMPT: usize = 3;

/// Describes a request to an agent by the beginning of its prompt.
pub(crate) fn asks(style: Style, stage: &str, batch: &str, agent: &str, prompt: &str) -> String {
    let place = place(stage, batch);
    let mut lines = vec![format!("{} asks {}:", style.strong(&place), visible(agent))];
    let shown = prompt.lines().filter(|line| !line.trim().is_empty());
    let margin = style.dim(format!("{place} |"));
    lines.extend(
        shown
            .take(PROMPT)
            .map(|line| format!("{margin} {}", visible(line))),
    );
    lines.join("\n")
}

/// A program printed lines.
pub(crate) fn printed(style: Style, stage: &str, batch: &str, text: &str) -> String {
    let place = style.dim(format!("{} |", place(stage, batch)));
    // Programs that redraw a line return to its start.
    let lines = text.lines().map(|line| {
        let shown = line
            .trim_end_matches('\r')
            .rsplit('\r')
            .next()
            .unwrap_or_default();
        format!("{place} {}", visible(shown)).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A service does not answer.
pub(crate) fn service_failed(style: Style, service: &str, why: &str, printed: &[String]) -> String {
    let mut text = format!(
        "{} {}: {}",
        style.strong(service),
        style.bad("failed"),
        visible(why)
    );
    for line in printed {
        text.push_str("\n    ");
        text.push_str(&visible(line));
    }
    text
}

/// The progress of a stage.
pub(crate) struct Halfway<'a> {
    pub(crate) stage: &'a str,
    /// Batches that have ended.
    pub(crate) done: u64,
    /// Batches that run in all.
    pub(crate) will: u64,
    /// Batches that failed.
    pub(crate) failed: u64,
    /// The cost of agents so far.
    pub(crate) spent: Spent,
    /// The expected time for the rest.
    pub(crate) left: Option<Duration>,
}

/// A stage made progress.
pub(crate) fn halfway(style: Style, halfway: &Halfway<'_>) -> String {
    let Halfway { done, will, .. } = *halfway;
    let failed = match halfway.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let left = halfway.left.map_or_else(String::new, |left| {
        format!(", about {} left", seconds(left.as_secs_f64()))
    });
    let spent = spent(&halfway.spent, done, will);
    let spent = spent.map_or_else(String::new, |spent| format!(", {spent}"));
    format!(
        "{} {done} of {}{failed}{left}{spent}",
        style.strong(halfway.stage),
        batches(will)
    )
}

/// Returns the cost of a stage so far, with an extrapolation to all batches.
pub(crate) fn spent(spent: &Spent, done: u64, will: u64) -> Option<String> {
    if spent.calls == 0 {
        return None;
    }
    let calls = count(spent.calls, "call", "calls");
    if spent.unpriced == spent.calls || spent.cost == NanoUsd::ZERO {
        return Some(calls);
    }
    let expected = match done {
        0 => String::new(),
        done if done == will => String::new(),
        done => {
            let all = u128::from(spent.cost.0) * u128::from(will) / u128::from(done);
            let all = NanoUsd(u64::try_from(all).unwrap_or(u64::MAX));
            format!(" of about {all}")
        }
    };
    Some(format!("{calls} for {}{expected}", spent.cost))
}

/// A call is not charged what its agent reports, or more than was reserved.
pub(crate) fn unexpected_usage(
    agent: &str,
    estimated: Option<Estimated>,
    reserved: NanoUsd,
    charged: NanoUsd,
) -> String {
    let usage = match estimated {
        None => {
            let [charged, reserved] = NanoUsd::apart([charged, reserved]);
            return format!(
                "agent `{agent}` used more than its request allows: a call cost {charged}, and at most {reserved} was reserved"
            );
        }
        Some(Estimated::ImplausibleUsage) => "implausible usage",
        Some(_) => "no usage",
    };
    format!(
        "agent `{agent}` reported {usage}: such calls are charged their reservation ({charged})"
    )
}

/// Calls of a stage are slow and run one batch at a time.
pub(crate) fn one_at_a_time(
    style: Style,
    stage: &str,
    waiting: u64,
    mean: Duration,
    command: &str,
) -> String {
    format!(
        "{} calls of {} take {} on average, and {} one at a time; to run 8 at once: {}",
        style.dim("note:"),
        style.strong(visible(stage)),
        seconds(mean.as_secs_f64()),
        count(waiting, "batch waits", "batches wait"),
        style.code(command)
    )
}

/// The state of a provider batch changed.
pub(crate) fn provider_batch(style: Style, stage: &str, update: &ProviderBatchUpdate) -> String {
    let line = match update {
        ProviderBatchUpdate::Resumed { batches: 1 } => {
            "waits for a provider batch of an earlier run".to_owned()
        }
        ProviderBatchUpdate::Resumed { batches } => {
            format!("waits for {batches} provider batches of earlier runs")
        }
        ProviderBatchUpdate::Submitted { id, requests } => {
            let requests = count(*requests as u64, "request", "requests");
            format!("submitted {requests} as provider batch `{}`", visible(id))
        }
        ProviderBatchUpdate::Ended {
            ids,
            answered,
            requests,
        } => format!(
            "provider batch `{}` ended: {answered} of {requests} answered",
            visible(&ids.join("` or `"))
        ),
    };
    format!("{} {line}", style.strong(stage))
}

/// Batches were submitted to a scheduler.
pub(crate) fn submitted(
    style: Style,
    stage: &str,
    executor: ExecutorName,
    id: &str,
    (jobs, batches): (u64, u64),
) -> String {
    format!(
        "{} submitted {} in {} with `{executor}`: {}",
        style.strong(stage),
        count(batches, "batch", "batches"),
        count(jobs, "job", "jobs"),
        visible(id)
    )
}

/// The run repaired what an interrupted run left.
pub(crate) fn repaired(style: Style, repair: &Repair) -> String {
    let line = match repair {
        Repair::JournalCut { bytes } => {
            let bytes = count(*bytes, "byte", "bytes");
            format!("removed an incomplete record of {bytes} from the journal")
        }
        Repair::ManifestRebuilt { stage } => {
            format!(
                "rebuilt manifests/{} from the journal: it was missing",
                visible(stage)
            )
        }
        Repair::ProcessesEnded { pids } => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            format!(
                "ended processes of the interrupted run: {}",
                pids.join(", ")
            )
        }
        Repair::BatchLost { batch } => {
            let batch = visible(batch);
            format!("{batch} runs again, because its files were lost")
        }
        Repair::Quarantined { files } => {
            let files = count(*files, "file", "files");
            format!("moved {files} that no batch produces any more to quarantine")
        }
        Repair::Published { files } => {
            let files = count(*files, "finished file", "finished files");
            format!("moved {files} into place")
        }
        Repair::StuckScratch { folder, problem } => stuck_scratch(folder, problem),
    };
    format!("{} {line}", style.dim("recovered:"))
}

/// Scratch files could not be removed.
pub(crate) fn stuck_scratch(folder: &str, problem: &str) -> String {
    format!("{problem}\nhelp: the scratch files are in {folder}")
}

/// An attempt failed, and another one follows.
pub(crate) fn trying_again(
    style: Style,
    stage: &str,
    batch: &str,
    attempt: u32,
    outcome: &Outcome,
    wait: Duration,
) -> String {
    let is_end_of_job = matches!(
        outcome.kind,
        OutcomeKind::Memory
            | OutcomeKind::Timeout
            | OutcomeKind::Node
            | OutcomeKind::Preempted
            | OutcomeKind::Job
    );
    let again = if wait.is_zero() && is_end_of_job {
        "trying again in a new job".to_owned()
    } else {
        format!("retrying in {}", seconds(wait.as_secs_f64()))
    };
    format!(
        "{} {}: {outcome}",
        style.strong(place(stage, batch)),
        style.warn(format!("attempt {attempt} failed, {again}"))
    )
}

/// A batch failed; shows the first details.
pub(crate) fn failed(
    style: Style,
    stage: &str,
    batch: &str,
    outcome: &Outcome,
    quarantine: Option<&str>,
) -> String {
    let place = style.strong(place(stage, batch));
    let mut lines = vec![format!("{place} {}: {outcome}", style.bad("failed"))];
    let shown = if outcome.details.len() == DETAILS + 1 {
        DETAILS + 1
    } else {
        DETAILS
    };
    let details = outcome.details.iter().take(shown);
    lines.extend(
        details
            .flat_map(|detail| detail.lines())
            .map(|line| format!("    {}", visible(line))),
    );
    if outcome.details.len() > shown {
        lines.push(format!("    and {} more", outcome.details.len() - shown));
    }
    if let Some(folder) = quarantine {
        lines.push(format!(
            "    help: partial output is in {}",
            visible(folder)
        ));
    }
    lines.join("\n")
}

/// A step of a batch reported a warning.
pub(crate) fn warning(style: Style, stage: &str, batch: &str, warning: &str) -> String {
    format!(
        "{} {}: {}",
        style.strong(place(stage, batch)),
        style.warn("warning"),
        visible(warning)
    )
}

/// Files were moved to quarantine. Lists those that were modified by hand first, the others up to a limit.
pub(crate) fn kept(style: Style, files: &[KeptFile]) -> Vec<String> {
    let by_hand = files.iter().filter(|file| file.was.is_by_hand());
    let others = files.iter().filter(|file| !file.was.is_by_hand());
    let others = others.take(LISTED);
    let mut lines: Vec<String> = by_hand
        .chain(others)
        .map(|file| moved(style, file))
        .collect();
    if lines.len() < files.len() {
        let more = (files.len() - lines.len()) as u64;
        let more = crate::view::text::words::count(more, "other file", "other files");
        lines.push(format!("      and {more} moved to .milepost/quarantine"));
    }
    lines
}

/// One file was moved to quarantine: a warning if it was modified by hand, else a note.
fn moved(style: Style, file: &KeptFile) -> String {
    let (path, quarantine) = (visible(&file.path), visible(&file.quarantine));
    let made_by = place(&file.stage, &file.batch);
    match (file.was, file.why) {
        (Content::AsMade, Removal::Failed) => format!(
            "{}: {path} is out of date and {made_by} failed: moved to {quarantine}",
            style.warn("note")
        ),
        (Content::AsMade, _) => format!(
            "{}: {path} is no longer produced by {made_by}: moved to {quarantine}",
            style.strong("note")
        ),
        (was, why) => {
            let was = match was {
                Content::Accepted => "was modified by hand and accepted",
                Content::Untracked if file.stage.is_empty() => "was in inputs",
                Content::Untracked => "was not written by Milepost",
                _ => "was modified by hand",
            };
            let why = match why {
                Removal::Replaced => "is replaced",
                Removal::Retired => "is no longer produced",
                Removal::Failed => "is out of date, and its batch failed",
                Removal::Cleaned => "is removed",
            };
            format!(
                "{}: {path} {was} and {why}\n      {} your version is in {quarantine}",
                style.warn("warning"),
                style.strong("help:"),
            )
        }
    }
}

/// A stage that ran has ended.
pub(crate) fn ended(style: Style, report: &StageReport) -> String {
    format!(
        "{}: {} after {}",
        style.strong(&report.stage),
        coloured(style, report.word()),
        seconds(report.seconds)
    )
}

/// Returns a state in its colour.
pub(crate) fn coloured(style: Style, word: StageWord) -> String {
    match word {
        StageWord::UpToDate => style.good(word.text()),
        StageWord::Failed | StageWord::Modified => style.bad(word.text()),
        _ => style.warn(word.text()),
    }
}
