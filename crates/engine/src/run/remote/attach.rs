//! Finds the submissions of earlier runs: jobs that still run or have finished are not submitted again.

use crate::run::agents::budget::share::Share;
use crate::run::batch::stage_context::StageContext;
use crate::run::remote::agents::are_free;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::driver::Driver;
use crate::run::remote::handover::{HandedBatch, SubmissionRecord};
use crate::run::remote::pack::{LimitFailures, WaitingBatch};
use crate::run::remote::sweep::{cancel, discard};
use crate::run::remote::{Remote, RemoteError};
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::jobs::Submission;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the jobs of a submission, by which the scheduler finds them.
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
        let mut jobs = self.arrays.iter().flat_map(|array| &array.jobs);
        if jobs.any(|job| job.is_ended) {
            for array in &self.arrays {
                array.submission.refresh();
            }
            self.read_logs()?;
            self.give_up_ended();
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

    /// Ends the jobs that are not followed. What they finished is taken over.
    fn give_up_ended(&mut self) {
        for at in 0..self.arrays.len() {
            for number in 0..self.arrays[at].jobs.len() {
                if !self.arrays[at].jobs[number].is_ended {
                    continue;
                }
                let mut batches = std::mem::take(&mut self.arrays[at].jobs[number].batches);
                batches.retain(|&index| self.is_finished(index));
                let job = &mut self.arrays[at].jobs[number];
                job.batches = batches;
                job.is_over = true;
            }
            if self.arrays[at].jobs.iter().all(|job| job.is_ended) {
                // Those that still run end after their current batch.
                let _ = self.arrays[at].submission.write(&["stop"], b"");
            }
        }
    }
}

/// Returns the arrays of earlier runs with batches of `waiting`, positions in the scan, or with shares. A batch belongs to the last
/// submission that has it. Submissions of the stage with no batch that is out of date are cancelled and removed.
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
    let undone = undone.filter(|(_, found)| found.decision != Ok(Decision::Reused));
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
        let shares = shares(&submission, record.jobs)?;
        let discard = || -> Result<bool, RemoteError> {
            for (share, number) in shares.iter().zip(0..) {
                let Some(share) = share else { continue };
                let taken = remote.calls.take_back((&submission, number), share);
                taken.map_err(RemoteError::Calls)?;
            }
            Ok(discard(ctx, &submission, Some(&record))?)
        };
        if record.executor != remote.name {
            discard()?;
            continue;
        }
        let id = id_of(remote, &submission)?;
        if id.is_none() && submission.processes()?.is_empty() {
            discard()?;
            continue;
        }
        let is_fresh = record.fresh || !stage_ctx.fresh;
        let is_same = record.version == ctx.settings.version && record.shared == scan.shared_id;
        let is_current = is_same && is_fresh;
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
                discard()?;
            }
            // Its shares count, although this run selects none of its batches.
            if !is_kept || shares.iter().all(Option::is_none) {
                continue;
            }
        }
        let needs = stage_ctx.stage.resources.or(&remote.settings.resources);
        let needs = needs.after(record.failures.memory, record.failures.time);
        let is_ended = id.is_none();
        let id = id.unwrap_or_else(|| job_name(&submission));
        let mut array = OpenArray::new(submission, record, id, needs, jobs);
        for (share, job) in shares.into_iter().zip(&mut array.jobs) {
            // A run took the share of a job back when it was over.
            job.is_ended = is_ended || stage_ctx.stage.asks_agents() && share.is_none();
            job.share = share;
        }
        array.is_kept = is_kept;
        arrays.push(array);
    }
    // Jobs that may spend more than is left, or exceed a limit of an agent, end, and what they finished is taken over. Shares of
    // submissions that were removed no longer count.
    for array in &mut arrays {
        let mut is_allowed = true;
        for share in array.jobs.iter().filter_map(|job| job.share.as_ref()) {
            is_allowed &= share.is_within_limits_of(stage_ctx.agents.agents());
            is_allowed &= are_free(stage_ctx.agents)
                || remote.calls.allows(share).map_err(RemoteError::Calls)?;
        }
        if !is_allowed {
            cancel(ctx, &array.submission, &array.record);
            array.jobs.iter_mut().for_each(|job| job.is_ended = true);
        }
    }
    Ok(arrays)
}

/// Returns what each job of a submission may spend.
///
/// # Errors
/// When a file cannot be read.
fn shares(submission: &Submission, jobs: u64) -> Result<Vec<Option<Share>>, RemoteError> {
    let shares = (0..jobs).map(|number| Share::read(submission, number));
    shares.collect::<Result<_, _>>().map_err(RemoteError::Calls)
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
