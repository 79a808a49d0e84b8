//! Finds the submissions of earlier runs: jobs that still run or have finished are not submitted again.

use crate::run::batch::stage_context::StageContext;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::driver::Driver;
use crate::run::remote::handover::{HandedBatch, SubmissionRecord};
use crate::run::remote::pack::{LimitFailures, WaitingBatch};
use crate::run::remote::sweep::discard;
use crate::run::remote::{CancelledJobs, Remote, RemoteError};
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::jobs::Submission;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the name of the jobs of a submission, by which the scheduler finds them.
pub(crate) fn job_name(submission: &Submission) -> String {
    format!("milepost-{}", submission.name())
}

impl Driver<'_> {
    /// Takes over the jobs of earlier runs, and puts batches that are in none into the queue.
    ///
    /// # Errors
    /// When the disk fails, or the scheduler does not answer.
    pub(crate) fn take_over(&mut self, startable: &[usize]) -> Result<(), RemoteError> {
        if !self.shared.order.is_forced {
            self.arrays = attach(
                self.remote,
                self.shared.stage_ctx,
                self.shared.scan,
                startable,
            )?;
        }
        for array in &self.arrays {
            for index in array.jobs.iter().flat_map(|job| &job.batches) {
                if let Some(batch) = self.open.get_mut(index) {
                    batch.failures = array.record.failures;
                }
            }
        }
        if self.arrays.iter().any(|array| array.is_unknown) {
            self.read_logs()?;
            self.give_up_unknown();
        }
        let jobs = self.arrays.iter().flat_map(|array| &array.jobs);
        let taken: BTreeSet<usize> = jobs.flat_map(|job| job.batches.iter().copied()).collect();
        let free = startable.iter().filter(|index| !taken.contains(index));
        let waits = free.filter_map(|&index| {
            let failures = self.open.get(&index)?.failures;
            Some(WaitingBatch {
                index,
                failures,
                is_alone: failures != LimitFailures::default(),
            })
        });
        self.waiting = waits.collect();
        Ok(())
    }

    /// Ends the jobs whose state the scheduler cannot report. Their finished batches are taken over.
    fn give_up_unknown(&mut self) {
        for at in 0..self.arrays.len() {
            if !self.arrays[at].is_unknown {
                continue;
            }
            for number in 0..self.arrays[at].jobs.len() {
                let mut batches = std::mem::take(&mut self.arrays[at].jobs[number].batches);
                batches.retain(|&index| self.is_finished(index));
                let job = &mut self.arrays[at].jobs[number];
                job.batches = batches;
                job.is_over = true;
            }
            // Those that still run end after their current batch.
            let _ = self.arrays[at].submission.write(&["stop"], b"");
        }
    }
}

/// Returns the arrays of earlier runs with batches of `waiting`, positions in the scan. A batch belongs to the last submission that has
/// it. Submissions of the stage without such batches are cancelled and removed.
///
/// # Errors
/// When the disk fails, or the scheduler does not answer.
fn attach(
    remote: &Remote<'_>,
    stage_ctx: &StageContext<'_>,
    scan: &StageScan,
    waiting: &[usize],
) -> Result<Vec<OpenArray>, RemoteError> {
    let ctx = &stage_ctx.ctx;
    let undone = scan.batches.iter().enumerate();
    let undone = undone.filter(|(_, found)| found.decision != Ok(Decision::UpToDate));
    let mut wanted: BTreeMap<&str, usize> = undone
        .map(|(index, found)| (found.batch.key.as_str(), index))
        .collect();
    let waiting: BTreeSet<usize> = waiting.iter().copied().collect();
    let mut arrays = Vec::new();
    for submission in Submission::all(ctx.disk, ctx.layout)?.into_iter().rev() {
        let Some(record) = SubmissionRecord::read(&submission)? else {
            // A kill came before it was submitted.
            submission.remove()?;
            continue;
        };
        if record.stage != stage_ctx.stage.name {
            continue;
        }
        if record.executor != remote.name {
            discard(ctx, &submission, Some(&record))?;
            continue;
        }
        let id = id_of(remote, &submission)?;
        if id.is_none() && submission.processes()?.is_empty() {
            submission.remove()?;
            continue;
        }
        let is_current = record.version == ctx.settings.version && record.shared == scan.shared_id;
        let mut jobs = Vec::new();
        let mut is_kept = false;
        for number in 0..record.jobs {
            let handed = match HandedBatch::read(&submission, number)? {
                Some(handed) if is_current => handed,
                _ => Vec::new(),
            };
            let of = |batch: HandedBatch| {
                let index = *wanted.get(batch.key.as_str())?;
                if scan.batches[index].own.id() != batch.facts.id() {
                    return None;
                }
                wanted.remove(batch.key.as_str());
                // One that this run does not select may be selected by a later one.
                is_kept |= !waiting.contains(&index);
                waiting.contains(&index).then_some(index)
            };
            jobs.push(handed.into_iter().map(of).collect::<Vec<_>>());
        }
        if jobs.iter().flatten().all(Option::is_none) {
            if !is_kept {
                if let Some(id) = id {
                    let _ = remote.executor.cancel(&id, CancelledJobs::All);
                }
                submission.remove()?;
            }
            continue;
        }
        let needs = stage_ctx.stage.resources.or(&remote.settings.resources);
        let needs = needs.after(record.failures.memory, record.failures.time);
        let is_unknown = id.is_none();
        let id = id.unwrap_or_else(|| job_name(&submission));
        let mut array = OpenArray::new(submission, record, id, needs, jobs);
        array.is_kept = is_kept;
        array.is_unknown = is_unknown;
        arrays.push(array);
    }
    Ok(arrays)
}

/// Returns the scheduler's id of a submission; `None` if it was not submitted, or the
/// scheduler cannot tell.
///
/// # Errors
/// When the scheduler does not answer, or the disk fails.
pub(crate) fn id_of(
    remote: &Remote<'_>,
    submission: &Submission,
) -> Result<Option<String>, RemoteError> {
    if let Some(id) = noted_id(submission)? {
        return Ok(Some(id));
    }
    // A kill may have come between the submission and its record.
    let found = remote.executor.find(&job_name(submission))?;
    if let Some(id) = &found {
        submission.write(&["id"], id.as_bytes())?;
    }
    Ok(found)
}

/// Returns the id that the runner, or the first of the jobs, noted.
fn noted_id(submission: &Submission) -> Result<Option<String>, RemoteError> {
    let bytes = submission.read(&["id"])?.unwrap_or_default();
    let id = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(id).filter(|id| !id.is_empty()))
}
