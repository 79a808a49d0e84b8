//! Runs the batches of one job of a submission, on the node where a scheduler started it.

use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use crate::run::agents::budget::{Budget, RunCalls};
use crate::run::remote::handover::SubmissionRecord;
use crate::run::remote::worker::{JobContext, work};
use crate::run::stop::StopFlag;
use milepost_agents::http::SharedHttp;
use milepost_core::plan::options::Timing;
use milepost_store::store::jobs::Submission;

/// The argument that makes the program run a job; the project, the workspace, the submission and the index of the job follow.
pub const JOB_WORKER: &str = "job-worker";

/// Runs the batches of a job. Nothing outside of the folder of the submission is written, besides logs.
///
/// # Errors
/// When the submission is gone, the program or the declarations differ from those of the runner, or the disk fails.
pub fn run_job(
    request: &Request,
    submission: &str,
    job: u64,
    stop: &StopFlag,
) -> Result<(), OpsError> {
    let mut opened = open(request)?;
    let submission = Submission::new(&opened.disk, &opened.workspace.layout, submission);
    let record = SubmissionRecord::read(&submission)?.ok_or_else(|| {
        OpsError::World(format!(
            "there is no submission in {}: its run has ended",
            submission.at(&[]).display()
        ))
    })?;
    opened.settings.params.clone_from(&record.params);
    opened.settings.workspace.clone_from(&record.workspace);
    opened.settings.agents.clone_from(&record.agents);
    opened.settings.overrides.clone_from(&record.overrides);
    opened.epoch = record.epoch;
    let ctx = opened.context();
    let budget = Budget {
        only_free: true,
        ..Budget::default()
    };
    let calls = RunCalls::new(ctx, &opened.project, submission.name(), budget);
    work(&JobContext {
        ctx,
        submission: &submission,
        record: &record,
        job,
        http: &SharedHttp::default(),
        calls: &calls,
        timing: Timing::default(),
        stop,
        wished: stop.seen(),
    })?;
    Ok(())
}
