//! What happens during a run, a line each: for logs, pipes and everything that is no terminal.

use super::paint::Paint;
use super::words::{batches, count, place, seconds};
use crate::model::call::Spent;
use crate::model::money::NanoUsd;
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
pub struct Halfway<'a> {
    /// Its name.
    pub stage: &'a str,
    /// Batches that are over.
    pub done: u64,
    /// Batches that run.
    pub will: u64,
    /// Batches that failed.
    pub failed: u64,
    /// What calls of agents cost.
    pub spent: Spent,
    /// The time that the others are expected to take.
    pub left: Option<Duration>,
}

/// How far a stage is.
pub fn halfway(paint: Paint, halfway: &Halfway<'_>) -> String {
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
pub fn spent(spent: &Spent, done: u64, will: u64) -> Option<String> {
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

/// Something to know while a stage goes on.
pub fn said(paint: Paint, stage: &str, line: &str) -> String {
    format!("{} {line}", paint.strong(stage))
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
