//! The submitted jobs in `status`, as the scheduler last reported them.

use crate::run::remote::JobState;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::handover::SubmissionRecord;
use jiff::Timestamp;
use milepost_core::model::executor::ExecutorName;
use milepost_store::store::disk::Disk;
use milepost_store::store::jobs::Submission;
use milepost_store::store::layout::Layout;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The name of the file in a submission.
const FILE: &str = "states.json";

/// The most nodes and reasons that are named.
const NODES: usize = 20;

/// The jobs of a submission, as the scheduler saw them last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct SubmittedJobs {
    /// The stage.
    pub stage: String,
    /// The scheduler.
    pub executor: ExecutorName,
    /// The scheduler's id of the array.
    pub id: String,
    /// When it was submitted, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub submitted: Timestamp,
    /// The number of jobs.
    pub jobs: u64,
    /// How many wait or run, and where.
    #[serde(flatten)]
    pub states: StatesOfJobs,
}

/// How many jobs of a submission wait or run, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StatesOfJobs {
    /// Jobs that wait.
    pub queued: u64,
    /// Why they wait, in the words of the scheduler.
    #[serde(default)]
    pub reasons: BTreeSet<String>,
    /// Jobs that run.
    pub running: u64,
    /// The first nodes on which they run.
    pub nodes: BTreeSet<String>,
    /// When the first of them started, in UTC, by the clock of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub running_since: Option<Timestamp>,
}

/// Keeps the states of the jobs of an array for `status`.
pub(super) fn keep(array: &OpenArray) {
    let mut states = StatesOfJobs::default();
    for job in array.jobs.iter().filter(|job| !job.is_over) {
        match &job.state {
            Some(JobState::Running(node)) => {
                states.running += 1;
                let started = job.processes.values().filter_map(|process| process.started);
                states.running_since = states.running_since.into_iter().chain(started).min();
                if states.nodes.len() < NODES && !node.is_empty() {
                    states.nodes.insert(node.clone());
                }
            }
            Some(JobState::Queued(reason)) => {
                states.queued += 1;
                if states.reasons.len() < NODES && !matches!(reason.as_str(), "" | "None") {
                    states.reasons.insert(reason.clone());
                }
            }
            None => states.queued += 1,
            Some(JobState::Ended(_)) => {}
        }
    }
    // Only people read it: the run continues without it.
    if let Ok(bytes) = serde_json::to_vec(&states) {
        let _ = array.submission.write(&[FILE], &bytes);
    }
}

/// Returns the submissions of a workspace whose jobs may wait or run.
pub(crate) fn submitted(disk: &Disk, layout: &Layout) -> Vec<SubmittedJobs> {
    let all = Submission::all(disk, layout).unwrap_or_default();
    let of = |submission: &Submission| {
        let record = SubmissionRecord::read(submission).ok()??;
        let id = submission.read(&["id"]).ok()??;
        let states = submission.read(&[FILE]).ok()?;
        let states = states.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Some(SubmittedJobs {
            stage: record.stage,
            executor: record.executor,
            id: String::from_utf8_lossy(&id).trim().to_owned(),
            submitted: record.submitted,
            jobs: record.jobs,
            states: states.unwrap_or(StatesOfJobs {
                queued: record.jobs,
                ..StatesOfJobs::default()
            }),
        })
    };
    all.iter().filter_map(of).collect()
}
