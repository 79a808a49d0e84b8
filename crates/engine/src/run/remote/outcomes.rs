//! Derives the outcome of batches without a record from the end of their job.

use crate::run::remote::JobEnd;
use crate::run::remote::pack::LimitFailures;
use milepost_core::base::duration::show_duration;
use milepost_core::base::size::show_size;
use milepost_core::model::executor::Resources;
use milepost_core::model::outcome::{Outcome, OutcomeKind};

/// How often a batch whose node was lost, or had no space left, gets another job.
pub(crate) const LOSSES: u32 = 3;

/// A batch without a record, in a job that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unrecorded {
    /// True if a process of the job was at the batch when it ended.
    pub(crate) was_begun: bool,
    /// True if that process had finished no batch before, so that the limits of the job were all its own.
    pub(crate) was_first: bool,
    /// True if a process of the job wrote its log at all.
    pub(crate) had_process: bool,
    /// Earlier failures at limits.
    pub(crate) failures: LimitFailures,
    /// How often its node was lost before.
    pub(crate) losses: u32,
}

/// The consequence for the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// It was not at fault: it gets another job.
    Again {
        /// True if that job is its own.
        alone: bool,
    },
    /// It failed, and is tried again in a job of its own.
    Retry(OutcomeKind),
    Fail(OutcomeKind),
}

/// Returns what the end of a job means for a batch. `end` is `None` if the scheduler no longer knows the job.
pub(crate) fn consequence(
    end: Option<JobEnd>,
    batch: Unrecorded,
    resources: &Resources,
) -> Consequence {
    let again = Consequence::Again { alone: false };
    let is_meant = batch.was_begun || !batch.had_process;
    let more = resources.retry;
    match end {
        Some(JobEnd::Cancelled) => Consequence::Fail(OutcomeKind::JobCancelled),
        Some(JobEnd::NodeFailed | JobEnd::Preempted) | None if is_meant => {
            let kind = match end {
                Some(JobEnd::NodeFailed) => OutcomeKind::Node,
                Some(JobEnd::Preempted) => OutcomeKind::Preempted,
                _ => OutcomeKind::Job,
            };
            if batch.losses < LOSSES {
                Consequence::Retry(kind)
            } else {
                Consequence::Fail(kind)
            }
        }
        _ if !is_meant => again,
        Some(JobEnd::OutOfMemory) => {
            if batch.was_begun && memory_grows(resources, batch.failures) {
                Consequence::Retry(OutcomeKind::Memory)
            } else {
                Consequence::Fail(OutcomeKind::Memory)
            }
        }
        Some(JobEnd::TimedOut) if batch.was_begun && !batch.was_first => {
            Consequence::Again { alone: true }
        }
        Some(JobEnd::TimedOut) => {
            let grows =
                more.is_some_and(|more| more.time > 1.0 && batch.failures.time < more.attempts);
            if grows && resources.time.is_some() && batch.was_begun {
                Consequence::Retry(OutcomeKind::Timeout)
            } else {
                Consequence::Fail(OutcomeKind::Timeout)
            }
        }
        _ => Consequence::Fail(OutcomeKind::Job),
    }
}

/// Returns true if the next job of a batch that lacked memory gets more.
pub(crate) fn memory_grows(resources: &Resources, failures: LimitFailures) -> bool {
    let more = resources.retry.as_ref();
    resources.memory.is_some()
        && more.is_some_and(|more| more.memory > 1.0 && failures.memory < more.attempts)
}

/// Returns the outcome of a batch whose job ended. `needs` is what the job got.
pub(crate) fn outcome(kind: OutcomeKind, job: &str, needs: &Resources) -> Outcome {
    let message = match kind {
        OutcomeKind::Memory => match needs.memory {
            Some(memory) => format!(
                "job {job} took more than its {} of memory: raise `memory` under [resources], or let it grow by `retry`",
                show_size(memory)
            ),
            None => format!(
                "job {job} took more memory than the cluster allows by default: declare `memory` under [resources]"
            ),
        },
        OutcomeKind::Timeout => match needs.time {
            Some(time) => format!(
                "job {job} exceeded its time limit of {}: raise `time` under [resources], or let it grow by `retry`",
                show_duration(time)
            ),
            None => format!(
                "job {job} exceeded the time limit of the cluster: declare `time` under [resources]"
            ),
        },
        OutcomeKind::Node => format!("the node of job {job} failed"),
        OutcomeKind::Preempted => format!("job {job} was preempted"),
        OutcomeKind::JobCancelled => format!("job {job} was cancelled, and not by this run"),
        _ => format!("job {job} ended without a record of the batch"),
    };
    Outcome::new(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::model::executor::MoreResources;
    use std::time::Duration;

    #[test]
    fn only_the_batch_at_fault_fails() {
        use Consequence::{Fail, Retry};
        use OutcomeKind::{Job, JobCancelled, Memory, Node, Preempted, Timeout};

        let at_fault = Unrecorded {
            was_begun: true,
            was_first: true,
            had_process: true,
            ..Unrecorded::default()
        };
        let later = Unrecorded {
            was_first: false,
            ..at_fault
        };
        let waiting = Unrecorded {
            had_process: true,
            ..Unrecorded::default()
        };
        let no_process = Unrecorded::default();
        let needs = Resources::default();
        let again = Consequence::Again { alone: false };
        for (end, batch, expected) in [
            (Some(JobEnd::TimedOut), at_fault, Fail(Timeout)),
            (
                Some(JobEnd::TimedOut),
                later,
                Consequence::Again { alone: true },
            ),
            (Some(JobEnd::TimedOut), waiting, again.clone()),
            (Some(JobEnd::TimedOut), no_process, Fail(Timeout)),
            (Some(JobEnd::OutOfMemory), at_fault, Fail(Memory)),
            (Some(JobEnd::OutOfMemory), waiting, again.clone()),
            (Some(JobEnd::NodeFailed), at_fault, Retry(Node)),
            (Some(JobEnd::NodeFailed), waiting, again.clone()),
            (Some(JobEnd::NodeFailed), no_process, Retry(Node)),
            (Some(JobEnd::Preempted), later, Retry(Preempted)),
            (Some(JobEnd::Cancelled), waiting, Fail(JobCancelled)),
            (Some(JobEnd::Failed), at_fault, Fail(Job)),
            (Some(JobEnd::Failed), waiting, again.clone()),
            (Some(JobEnd::Failed), no_process, Fail(Job)),
            (Some(JobEnd::Done), no_process, Fail(Job)),
            (None, at_fault, Retry(Job)),
            (None, waiting, again),
        ] {
            assert_eq!(consequence(end, batch, &needs), expected, "{end:?}");
        }
        let lost = Unrecorded {
            losses: LOSSES,
            ..at_fault
        };
        let end = Some(JobEnd::NodeFailed);
        assert_eq!(consequence(end, lost, &needs), Fail(Node));
    }

    #[test]
    fn limits_grow_as_often_as_declared() {
        let needs = Resources {
            memory: Some(1 << 20),
            time: Some(Duration::from_mins(1)),
            retry: Some(MoreResources {
                memory: 2.0,
                time: 1.0,
                attempts: 2,
            }),
            cpus: None,
        };
        let batch = |memory| Unrecorded {
            was_begun: true,
            was_first: true,
            had_process: true,
            failures: LimitFailures { memory, time: 0 },
            losses: 0,
        };
        let after = |memory| consequence(Some(JobEnd::OutOfMemory), batch(memory), &needs);
        assert_eq!(after(1), Consequence::Retry(OutcomeKind::Memory));
        assert_eq!(after(2), Consequence::Fail(OutcomeKind::Memory));
        let timed_out = consequence(Some(JobEnd::TimedOut), batch(0), &needs);
        assert_eq!(timed_out, Consequence::Fail(OutcomeKind::Timeout));
        let shown = outcome(OutcomeKind::Memory, "17_3", &needs).to_string();
        assert_eq!(
            shown,
            "MEMORY: job 17_3 took more than its 1 MiB of memory: raise `memory` under [resources], or let it grow by `retry`"
        );
    }
}
