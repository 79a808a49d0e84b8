//! Packs batches into the jobs of an array.

use serde::{Deserialize, Serialize};

/// The failures of a batch at the limits of its jobs: they decide what its next job gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitFailures {
    /// How often it lacked memory.
    pub(crate) memory: u32,
    /// How often it exceeded the time limit.
    pub(crate) time: u32,
}

/// A batch that waits for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingBatch {
    /// The position in the scan.
    pub(crate) index: usize,
    pub(crate) failures: LimitFailures,
    /// True if it gets a job of its own, because a job that it shared ended in the middle of it.
    pub(crate) is_alone: bool,
}

impl WaitingBatch {
    /// Returns true if its job gets the same as the job of another batch.
    fn is_like(&self, other: &Self) -> bool {
        (self.failures, self.is_alone) == (other.failures, other.is_alone)
    }
}

/// The jobs of an array, which all get the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PackedArray {
    pub(crate) failures: LimitFailures,
    /// The batches of each job.
    pub(crate) jobs: Vec<Vec<usize>>,
}

/// Returns how many jobs this many batches need.
pub(crate) fn jobs(batches: u64, per_job: u64) -> u64 {
    batches.div_ceil(per_job.max(1))
}

/// Returns how many jobs the first batches need, with all that have failed alike.
pub(crate) fn wanted(waiting: &[WaitingBatch], per_job: u64) -> u64 {
    let Some(first) = waiting.first() else {
        return 0;
    };
    let alike = waiting.iter().filter(|batch| batch.is_like(first)).count();
    jobs(alike as u64, if first.is_alone { 1 } else { per_job })
}

/// Returns the maximum number of jobs of the next array; `None` if it has to wait. `at_once` jobs may run at once, and `open` jobs
/// wait or run. The first array takes all that fit: the scheduler starts them one after another. Later arrays take only as many as
/// may run at once with the others, and never few unless these are the last: many small arrays cost the scheduler more than few
/// large ones.
pub(crate) fn room(wanted: u64, open: u64, (at_once, size): (u64, u64)) -> Option<u64> {
    if open == 0 {
        return Some(size);
    }
    let free = at_once.saturating_sub(open).min(size);
    let suffices = free >= wanted || free >= at_once.min(size) / 2;
    (free > 0 && suffices).then_some(free)
}

/// Packs the first batches into one array of at most `most` jobs with at most `per_job` batches each. All batches of an array have
/// failed alike. The jobs of one array differ by at most one batch, so that they end together.
pub(crate) fn pack(waiting: &[WaitingBatch], per_job: u64, most: u64) -> PackedArray {
    let Some(first) = waiting.first() else {
        return PackedArray::default();
    };
    let per_job = if first.is_alone { 1 } else { per_job.max(1) };
    let room = usize::try_from(per_job.saturating_mul(most)).unwrap_or(usize::MAX);
    let indices: Vec<usize> = waiting
        .iter()
        .filter(|batch| batch.is_like(first))
        .take(room)
        .map(|batch| batch.index)
        .collect();
    let count = jobs(indices.len() as u64, per_job) as usize;
    let (share, more) = (indices.len() / count, indices.len() % count);
    let mut rest = indices.as_slice();
    let mut packed = Vec::with_capacity(count);
    for number in 0..count {
        let (job, others) = rest.split_at(share + usize::from(number < more));
        packed.push(job.to_vec());
        rest = others;
    }
    PackedArray {
        failures: first.failures,
        jobs: packed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(count: usize) -> Vec<WaitingBatch> {
        let batch = |index| WaitingBatch {
            index,
            failures: LimitFailures::default(),
            is_alone: false,
        };
        (0..count).map(batch).collect()
    }

    #[test]
    fn jobs_of_an_array_are_equally_long() {
        let sizes = |batches, per_job, most| {
            let packed = pack(&waiting(batches), per_job, most);
            packed.jobs.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(10, 4, 100), [4, 3, 3]);
        assert_eq!(sizes(10, 4, 2), [4, 4]);
        assert_eq!(sizes(1, 100, 1), [1]);
        assert_eq!(sizes(0, 4, 2), [] as [usize; 0]);
        assert_eq!(jobs(10, 4), 3);
        let all: Vec<usize> = pack(&waiting(7), 2, 9).jobs.concat();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn no_more_jobs_are_open_than_may_run_at_once() {
        assert_eq!(room(500, 0, (100, 1000)), Some(1000));
        for (wanted, open, expected) in [
            (500, 100, None),
            (500, 99, None),
            (1, 99, Some(1)),
            (500, 50, Some(50)),
            (500, 700, None),
        ] {
            assert_eq!(room(wanted, open, (100, 1000)), expected, "{open} open");
        }
        assert_eq!(room(5000, 1000, (5000, 1000)), Some(1000));
        assert_eq!(room(3, 1, (1, 1000)), None);
        let mut all = waiting(5);
        assert_eq!(wanted(&all, 2), 3);
        all[0].is_alone = true;
        assert_eq!(wanted(&all, 2), 1);
    }

    #[test]
    fn a_batch_that_ran_into_a_limit_gets_a_job_of_its_own() {
        let mut all = waiting(4);
        for at in [0, 2] {
            all[at].is_alone = true;
            all[at].failures.memory = 1;
        }
        let packed = pack(&all, 10, 10);
        assert_eq!(packed.jobs, [[0], [2]]);
        assert_eq!(packed.failures.memory, 1);
        all.retain(|batch| !batch.is_alone);
        assert_eq!(pack(&all, 10, 10).jobs, [[1, 3]]);
    }
}
