//! What happens during a run, a line each: for logs, pipes and everything that is no terminal.

use super::paint::Paint;
use super::words::{batches, place, seconds};
use crate::model::outcome::Outcome;
use crate::ops::run::{StageReport, StageStatus};
use std::time::Duration;

/// How many lines of detail are shown of a failure.
const DETAILS: usize = 5;

/// A stage begins.
pub fn started(paint: Paint, stage: &str, all: u64, will: u64, about: Option<&str>) -> String {
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
pub fn service_started(paint: Paint, service: &str) -> String {
    format!("{} starts, a service", paint.strong(service))
}

/// A service that was started does not answer.
pub fn service_failed(paint: Paint, service: &str, why: &str, printed: &[String]) -> String {
    let mut text = format!("{} {}: {why}", paint.strong(service), paint.bad("failed"));
    for line in printed {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

/// How far a stage is.
pub fn halfway(
    paint: Paint,
    stage: &str,
    done: u64,
    will: u64,
    failed: u64,
    left: Option<Duration>,
) -> String {
    let failed = if failed == 0 {
        String::new()
    } else {
        format!(", {failed} failed")
    };
    let left = left
        .map(|left| format!(", about {} left", seconds(left.as_secs_f64())))
        .unwrap_or_default();
    format!(
        "{} {done} of {}{failed}{left}",
        paint.strong(stage),
        batches(will)
    )
}

/// A try failed, and another follows.
pub fn trying_again(
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
        paint.warn(format!("try {attempt} failed, again in {wait}"))
    )
}

/// A batch failed for good, with the first lines of detail.
pub fn failed(
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
        lines.push(format!("    what it left is in {folder}"));
    }
    lines.join("\n")
}

/// A warning of a batch's steps.
pub fn warning(paint: Paint, stage: &str, batch: &str, warning: &str) -> String {
    format!(
        "{} {}: {warning}",
        paint.strong(place(stage, batch)),
        paint.warn("warning")
    )
}

/// Outputs went to quarantine.
pub fn retired(paint: Paint, stage: &str, batch: &str, files: u64, failed: bool) -> String {
    let files = super::words::count(files, "file", "files");
    let why = if failed {
        "what it made before does not stand"
    } else {
        "is no longer made"
    };
    format!(
        "{} {why}: {files} moved to quarantine",
        paint.strong(place(stage, batch))
    )
}

/// A stage ended that had something to do.
pub fn ended(paint: Paint, report: &StageReport) -> String {
    format!(
        "{} {} in {}",
        paint.strong(&report.stage),
        status(paint, report.status),
        seconds(report.seconds)
    )
}

/// The status in its colour.
pub fn status(paint: Paint, status: StageStatus) -> String {
    match status {
        StageStatus::Complete => paint.good("complete"),
        StageStatus::Partial => paint.warn("partial"),
        StageStatus::Held => paint.warn("held"),
        StageStatus::Blocked => paint.warn("blocked"),
        StageStatus::Failed => paint.bad("failed"),
        StageStatus::Altered => paint.bad("altered"),
    }
}
