//! What happens during a run, a line each: for logs, pipes and everything that is no terminal.

use super::paint::Paint;
use super::words::{batches, count, place, seconds};
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::Outcome;
use milepost_engine::ops::run::{
    Content, KeptFile, ProviderBatchUpdate, Removal, Repair, StageReport, StageStatus,
};
use std::time::Duration;

/// How many lines of detail are shown of a failure.
const DETAILS: usize = 5;

/// How many files that nothing makes any more are listed.
const LISTED: usize = 20;

/// A stage begins.
pub(crate) fn started(
    paint: Paint,
    stage: &str,
    all: u64,
    will: u64,
    about: Option<&str>,
) -> String {
    let about = about
        .map(|about| paint.dim(format!("  {about}")))
        .unwrap_or_default();
    let size = match (all, will) {
        (1, 1) => "starts".to_owned(),
        _ if all == will => format!("starts: {}", batches(all)),
        _ => format!("starts: {will} of {}", batches(all)),
    };
    format!("{} {size}{about}", paint.strong(stage))
}

/// A service was started.
pub(crate) fn service_started(paint: Paint, service: &str) -> String {
    format!("{} starts, a service", paint.strong(service))
}

/// A service that was started does not answer.
pub(crate) fn service_failed(paint: Paint, service: &str, why: &str, printed: &[String]) -> String {
    let mut text = format!("{} {}: {why}", paint.strong(service), paint.bad("failed"));
    for line in printed {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

/// How far a stage is.
pub(crate) struct Halfway<'a> {
    /// Its name.
    pub(crate) stage: &'a str,
    /// Batches that are over.
    pub(crate) done: u64,
    /// Batches that run.
    pub(crate) will: u64,
    /// Batches that failed.
    pub(crate) failed: u64,
    /// What calls of agents cost.
    pub(crate) spent: Spent,
    /// The time that the others are expected to take.
    pub(crate) left: Option<Duration>,
}

/// How far a stage is.
pub(crate) fn halfway(paint: Paint, halfway: &Halfway<'_>) -> String {
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
        paint.strong(halfway.stage),
        batches(will)
    )
}

/// What a stage spent, and what it is expected to spend in all, as its batches go.
pub(crate) fn spent(spent: &Spent, done: u64, will: u64) -> Option<String> {
    if spent.calls == 0 {
        return None;
    }
    let calls = count(spent.calls, "call", "calls");
    if spent.unpriced == spent.calls {
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

/// The state of a provider batch changed.
pub(crate) fn provider_batch(paint: Paint, stage: &str, update: &ProviderBatchUpdate) -> String {
    let line = match update {
        ProviderBatchUpdate::Resumed { batches: 1 } => {
            "waits for a provider batch of an earlier run".to_owned()
        }
        ProviderBatchUpdate::Resumed { batches } => {
            format!("waits for {batches} provider batches of earlier runs")
        }
        ProviderBatchUpdate::Submitted { id, requests } => {
            let requests = count(*requests as u64, "request", "requests");
            format!("submitted {requests} as provider batch `{id}`")
        }
        ProviderBatchUpdate::Ended {
            ids,
            answered,
            requests,
        } => format!(
            "provider batch `{}` ended: {answered} of {requests} answered",
            ids.join("` or `")
        ),
    };
    format!("{} {line}", paint.strong(stage))
}

/// The run repaired what an interrupted run left.
pub(crate) fn repaired(paint: Paint, repair: &Repair) -> String {
    let line = match repair {
        Repair::JournalCut { bytes } => {
            let bytes = count(*bytes, "byte", "bytes");
            format!("removed an incomplete record of {bytes} from the journal")
        }
        Repair::ProcessesEnded { pids } => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            format!(
                "ended processes of the interrupted run: {}",
                pids.join(", ")
            )
        }
        Repair::BatchLost { batch } => format!("{batch} runs again, because its files were lost"),
        Repair::Quarantined { files } => {
            let files = count(*files, "file", "files");
            format!("moved {files} that no batch makes any more to quarantine")
        }
        Repair::Published { files } => {
            let files = count(*files, "finished file", "finished files");
            format!("moved {files} into place")
        }
    };
    format!("{} {line}", paint.dim("recovered:"))
}

/// A try failed, and another follows.
pub(crate) fn trying_again(
    paint: Paint,
    stage: &str,
    batch: &str,
    attempt: u32,
    outcome: &Outcome,
    wait: Duration,
) -> String {
    let wait = seconds(wait.as_secs_f64());
    format!(
        "{} {}: {outcome}",
        paint.strong(place(stage, batch)),
        paint.warn(format!("attempt {attempt} failed, retrying in {wait}"))
    )
}

/// A batch failed for good, with the first lines of detail.
pub(crate) fn failed(
    paint: Paint,
    stage: &str,
    batch: &str,
    outcome: &Outcome,
    quarantine: Option<&str>,
) -> String {
    let place = paint.strong(place(stage, batch));
    let mut lines = vec![format!("{place} {}: {outcome}", paint.bad("failed"))];
    let shown = if outcome.details.len() == DETAILS + 1 {
        DETAILS + 1
    } else {
        DETAILS
    };
    let details = outcome.details.iter().take(shown);
    lines.extend(
        details
            .flat_map(|detail| detail.lines())
            .map(|line| format!("    {line}")),
    );
    if outcome.details.len() > shown {
        lines.push(format!("    and {} more", outcome.details.len() - shown));
    }
    if let Some(folder) = quarantine {
        lines.push(format!("    help: partial output is in {folder}"));
    }
    lines.join("\n")
}

/// A warning of a batch's steps.
pub(crate) fn warning(paint: Paint, stage: &str, batch: &str, warning: &str) -> String {
    format!(
        "{} {}: {warning}",
        paint.strong(place(stage, batch)),
        paint.warn("warning")
    )
}

/// Files were moved to quarantine: a line for each, up to a limit, first those that a person wrote.
pub(crate) fn kept(paint: Paint, files: &[KeptFile]) -> Vec<String> {
    let by_hand = files.iter().filter(|file| file.was.is_by_hand());
    let others = files.iter().filter(|file| !file.was.is_by_hand());
    let others = others.take(LISTED);
    let mut lines: Vec<String> = by_hand
        .chain(others)
        .map(|file| moved(paint, file))
        .collect();
    if lines.len() < files.len() {
        let more = (files.len() - lines.len()) as u64;
        let more = super::words::count(more, "other file", "other files");
        lines.push(format!("      and {more} moved to .milepost/quarantine"));
    }
    lines
}

/// One file that was moved to quarantine. What a person wrote is a matter of concern, what nothing makes any more is news.
fn moved(paint: Paint, file: &KeptFile) -> String {
    let KeptFile {
        path, quarantine, ..
    } = file;
    let made_by = place(&file.stage, &file.batch);
    match (file.was, file.why) {
        (Content::AsMade, Removal::Failed) => format!(
            "{}: {path} is out of date and {made_by} failed: moved to {quarantine}",
            paint.warn("note")
        ),
        (Content::AsMade, _) => format!(
            "{}: {path} is no longer made by {made_by}: moved to {quarantine}",
            paint.strong("note")
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
                Removal::Retired => "is no longer made",
                Removal::Failed => "is out of date, and its batch failed",
                Removal::Cleaned => "is removed",
            };
            format!(
                "{}: {path} {was} and {why}\n      {} your version is in {quarantine}",
                paint.warn("warning"),
                paint.strong("help:"),
            )
        }
    }
}

/// A stage ended that had something to do.
pub(crate) fn ended(paint: Paint, report: &StageReport) -> String {
    format!(
        "{} {} in {}",
        paint.strong(&report.stage),
        status(paint, report.status),
        seconds(report.seconds)
    )
}

/// The status in its colour.
pub(crate) fn status(paint: Paint, status: StageStatus) -> String {
    match status {
        StageStatus::Complete => paint.good("complete"),
        StageStatus::Partial => paint.warn("partial"),
        StageStatus::Held => paint.warn("waiting"),
        StageStatus::Blocked => paint.warn("blocked"),
        StageStatus::Failed => paint.bad("failed"),
        StageStatus::Altered => paint.bad("modified"),
    }
}
