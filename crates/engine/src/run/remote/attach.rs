//! Finds the submissions of earlier runs: jobs that still run or have finished are not submitted again.

use crate::run::batch::stage_context::StageContext;
use crate::run::error::RunError;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::handover::{HandedBatch, SubmissionRecord};
use crate::run::remote::{CancelledJobs, ExecutorError, Remote};
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::jobs::Submission;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the jobs of a submission, by which the scheduler finds them.
pub(crate) fn job_name(submission: &Submission) -> String {
    format!("milepost-{}", submission.name())
}

/// Why batches cannot run as jobs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The scheduler refused.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// A file of a submission cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A log cannot be read.
    #[error("cannot read the logs of jobs: {0}")]
    Log(#[from] std::io::Error),
}

/// Returns the arrays of earlier runs with batches of `waiting`, positions in the scan. Submissions of the stage without such batches
/// are cancelled and removed.
///
/// # Errors
/// When the disk fails, or the scheduler does not answer.
pub(crate) fn attach(
    remote: &Remote<'_>,
    stage_ctx: &StageContext<'_>,
    survey: &StageScan,
    waiting: &[usize],
) -> Result<Vec<OpenArray>, RemoteError> {
    let ctx = &stage_ctx.ctx;
    let undone = survey.batches.iter().enumerate();
    let undone = undone.filter(|(_, found)| found.decision != Ok(Decision::Reused));
    let mut wanted: BTreeMap<&str, usize> = undone
        .map(|(index, found)| (found.batch.key.as_str(), index))
        .collect();
    let waiting: BTreeSet<usize> = waiting.iter().copied().collect();
    let mut arrays = Vec::new();
    for submission in Submission::all(ctx.disk, ctx.layout)? {
        let Some(record) = SubmissionRecord::read(&submission)? else {
            // A kill came before it was submitted.
            submission.remove()?;
            continue;
        };
        if record.stage != stage_ctx.stage.name {
            continue;
        }
        let id = match id_of(remote, &submission)? {
            Some(id) if record.executor == remote.name => id,
            _ => {
                submission.remove()?;
                continue;
            }
        };
        let is_current =
            record.version == ctx.settings.version && record.shared == survey.shared_id;
        let mut jobs = Vec::new();
        let mut is_kept = false;
        for number in 0..record.jobs {
            let handed = match HandedBatch::read(&submission, number)? {
                Some(handed) if is_current => handed,
                _ => Vec::new(),
            };
            let mut batches = Vec::new();
            for batch in handed {
                let Some(&index) = wanted.get(batch.key.as_str()) else {
                    continue;
                };
                if survey.batches[index].own.id() == batch.facts.id() {
                    wanted.remove(batch.key.as_str());
                    if waiting.contains(&index) {
                        batches.push(index);
                    } else {
                        // This run does not select it, and a later one may.
                        is_kept = true;
                    }
                }
            }
            jobs.push(batches);
        }
        if is_kept && jobs.iter().all(Vec::is_empty) {
            continue;
        }
        if jobs.iter().all(Vec::is_empty) {
            // The jobs end in any case once their folder is gone.
            let _ = remote.executor.cancel(&id, CancelledJobs::All);
            submission.remove()?;
            continue;
        }
        let needs = stage_ctx.stage.resources.or(&remote.settings.resources);
        let needs = needs.after(record.failures.memory, record.failures.time);
        let mut array = OpenArray::new(submission, record, id, needs, jobs);
        array.is_kept = is_kept;
        arrays.push(array);
    }
    Ok(arrays)
}

/// Returns the scheduler's id of a submission; `None` if it was not submitted.
fn id_of(remote: &Remote<'_>, submission: &Submission) -> Result<Option<String>, RemoteError> {
    if let Some(bytes) = submission.read(&["id"])? {
        return Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()));
    }
    // A kill may have come between the submission and its record.
    let found = remote.executor.find(&job_name(submission))?;
    if let Some(id) = &found {
        submission.write(&["id"], id.as_bytes())?;
    }
    Ok(found)
}
