//! Runs the batches of one job of a submission, on the node where a scheduler started it.

use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::run::agents::budget::{Budget, RunCalls};
use crate::run::remote::handover::{HandedBatch, SubmissionRecord};
use crate::run::remote::worker::{JobContext, await_visible, checked_stage, work};
use crate::run::stop::StopFlag;
use milepost_core::base::duration::show_duration;
use milepost_core::plan::options::Timing;
use milepost_store::store::jobs::Submission;
use std::time::Duration;

/// The argument that makes the program run a job; the project, the workspace, the submission and the index of the job and `visible` in
/// milliseconds follow.
pub const JOB_WORKER: &str = "job-worker";

/// The files that a job reads before its first batch.
struct HandedJob {
    opened: OpenProject,
    submission: Submission,
    record: SubmissionRecord,
    batches: Vec<HandedBatch>,
}

/// Runs the batches of a job. Nothing outside of the folder of the submission is written, besides logs. `visible` is how long a file
/// that another machine wrote may stay invisible here.
///
/// # Errors
/// When the submission is gone, the program or the declarations differ from those of the runner, or the disk fails.
pub fn run_job(
    request: &Request,
    submission: &str,
    job: u64,
    visible: Duration,
    stop: &StopFlag,
) -> Result<(), OpsError> {
    let handed = await_visible(visible, stop, || HandedJob::read(request, submission, job));
    if stop.is_set() {
        return Ok(());
    }
    let handed = handed.map_err(|error| late(error, visible))?;
    let (submission, record) = (&handed.submission, &handed.record);
    let ctx = handed.opened.context();
    let budget = Budget {
        only_free: true,
        ..Budget::default()
    };
    let calls = RunCalls::new(ctx, submission.name(), budget);
    work(&JobContext {
        ctx,
        submission,
        record,
        job,
        batches: &handed.batches,
        visible,
        calls: &calls,
        timing: Timing::default(),
        stop,
        stopped: stop.stopped(),
    })?;
    Ok(())
}

impl HandedJob {
    /// Reads the declarations and what the runner wrote for the job, as far as this node sees it.
    ///
    /// # Errors
    /// When something is missing, or differs from what the runner saw.
    fn read(request: &Request, submission: &str, job: u64) -> Result<Self, OpsError> {
        let mut opened = open(request)?;
        let submission = Submission::new(&opened.disk, &opened.workspace.layout, submission);
        let missing = |what: &str| OpsError::World(format!("there is no {what}"));
        let job_file = |parts: &[&str]| submission.at(parts).display().to_string();
        let record = SubmissionRecord::read(&submission)?;
        let record = record.ok_or_else(|| missing(&job_file(&["job.json"])))?;
        opened.settings.params.clone_from(&record.params);
        opened.settings.workspace.clone_from(&record.workspace);
        opened.settings.agents.clone_from(&record.agents);
        opened.settings.overrides.clone_from(&record.overrides);
        opened.epoch = record.epoch;
        let batches = HandedBatch::read(&submission, job)?;
        let tasks = job_file(&["tasks", &format!("{job}.json")]);
        let batches = batches.ok_or_else(|| missing(&tasks))?;
        // No wait makes another version the same: `work` refuses it.
        if record.version == opened.settings.version {
            checked_stage(&opened.context(), &record)?;
        }
        Ok(Self {
            opened,
            submission,
            record,
            batches,
        })
    }
}

/// Returns the error of a job that could not begin, after a wait for `visible`.
fn late(error: OpsError, visible: Duration) -> OpsError {
    match error {
        OpsError::Declarations(_) => error,
        other => OpsError::World(format!(
            "{other} (waited {} for the files of the run: it has ended, or this node does not see them; check that it has the same file system, or raise `visible` under [executor])",
            show_duration(visible)
        )),
    }
}
