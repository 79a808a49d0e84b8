//! Removes submissions that no later run needs: of stages that are finished or no longer declared.

use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::remote::CancelledJobs;
use crate::run::remote::handover::SubmissionRecord;
use crate::run::remote::schedulers::Scheduler;
use crate::run::report::{StageReport, StageStatus};
use milepost_store::store::jobs::Submission;

/// Cancels the jobs of submissions that no later run needs, and removes their folders; then the folder of all, if it is empty.
///
/// # Errors
/// When the disk fails.
pub(crate) fn sweep(ctx: &Context<'_>, reports: &[StageReport]) -> Result<(), RunError> {
    let all = Submission::all(ctx.disk, ctx.layout);
    let all =
        all.map_err(|error| RunError::World(format!("cannot read .milepost/jobs: {error}")))?;
    let mut are_left = false;
    for submission in all {
        let record = SubmissionRecord::read(&submission)?;
        let is_needed = record.as_ref().is_some_and(|record| {
            let report = reports.iter().find(|report| report.stage == record.stage);
            let is_declared = ctx.pipeline.stage(&record.stage).is_some();
            is_declared && !report.is_some_and(has_ended)
        });
        if is_needed {
            are_left = true;
            continue;
        }
        are_left |= !discard(ctx, &submission, record.as_ref())?;
    }
    let folder = ctx.layout.jobs();
    if !are_left && folder.exists() {
        ctx.disk.remove_dir_all(&folder)?;
    }
    Ok(())
}

/// Returns true if the run had all batches of a stage: it was not blocked, and none is left.
fn has_ended(report: &StageReport) -> bool {
    let could_begin = report.why.is_none() && report.status != StageStatus::Modified;
    could_begin && report.left == 0
}

/// Cancels the jobs of a submission, and removes it. Returns false if programs of its jobs still write: the next run removes it.
///
/// # Errors
/// When the disk fails.
pub(crate) fn discard(
    ctx: &Context<'_>,
    submission: &Submission,
    record: Option<&SubmissionRecord>,
) -> Result<bool, RunError> {
    let scheduler = record.and_then(|record| Scheduler::new(ctx, record.executor));
    let id = submission.read(&["id"]).ok().flatten();
    if let (Some(scheduler), Some(id)) = (scheduler, id) {
        let id = String::from_utf8_lossy(&id);
        // Jobs end by themselves once their folder is gone.
        let _ = scheduler.executor().cancel(id.trim(), CancelledJobs::All);
    }
    Ok(submission.remove()?)
}
