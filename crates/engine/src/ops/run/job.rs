//! Runs the batches of one job of a submission, on the node where a scheduler started it.

use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::run::agents::budget::share::Share;
use crate::run::agents::budget::{Budget, RunCalls};
use crate::run::agents::project_agents::{Agents, Purpose, StageAgents, agents, of_stage};
use crate::run::remote::handover::{HandedBatch, SubmissionRecord};
use crate::run::remote::node::worker::{JobContext, await_visible, checked_stage, work};
use crate::run::stop::StopFlag;
use milepost_core::base::duration::show_duration;
use milepost_core::model::batched::log_of_job;
use milepost_core::plan::options::Timing;
use milepost_store::store::jobs::Submission;
use std::collections::BTreeMap;
use std::time::Duration;

/// The argument that makes the program run a job; the project, the workspace, the submission and the index of the job and `visible` in
/// milliseconds follow.
pub const JOB_WORKER: &str = "job-worker";

/// What a job reads before its first batch.
struct HandedJob {
    opened: OpenProject,
    submission: Submission,
    record: SubmissionRecord,
    batches: Vec<HandedBatch>,
}

/// Runs the batches of a job. Nothing outside of the folder of the submission is written, besides logs, and calls and answers of agents.
/// `visible` is how long a file that another machine wrote may stay invisible here.
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
    let project = &handed.opened.project;
    let share = handed.take_share(job)?;
    let purpose = Purpose::Job(share.as_ref().map_or(1, |share| share.at_once));
    let all = agents(purpose, ctx.pipeline, project, &request.environment);
    let all = all.map_err(|error| OpsError::World(error.to_string()))?;
    let asked = match &share {
        Some(_) => agents_of_stage(&handed, &all, &request.environment)?,
        None => StageAgents::default(),
    };
    let log = log_of_job(&record.run, submission.name(), job);
    let calls = match &share {
        Some(share) => RunCalls::of_job(ctx, project, &log, share, (submission, job)),
        None => RunCalls::new(ctx, project, &log, Budget::default()),
    };
    work(&JobContext {
        ctx,
        submission,
        record,
        job,
        batches: &handed.batches,
        visible,
        http: all.http(),
        agents: &asked,
        calls: &calls,
        share: share.as_ref(),
        timing: Timing::default(),
        stop,
        wished: stop.seen(),
    })?;
    Ok(())
}

impl HandedJob {
    /// Takes what this job may spend; `None` if it asks no agents, or another process of it has that.
    ///
    /// # Errors
    /// When it cannot be read.
    fn take_share(&self, job: u64) -> Result<Option<Share>, OpsError> {
        let bytes = self.submission.take_share(job);
        let bytes = bytes.map_err(OpsError::unreadable(&"shares"))?;
        let read = bytes
            .map(|bytes| serde_json::from_slice(&bytes))
            .transpose();
        read.map_err(|error| OpsError::World(error.to_string()))
    }

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
            let asks = checked_stage(&opened.context(), &record)?.asks_agents();
            let share = Share::read(&submission, job);
            let share = share.map_err(|outcome| OpsError::World(outcome.message))?;
            if asks && share.is_none() {
                return Err(missing(&job_file(&["shares", &job.to_string()])));
            }
            // The run divided these limits; a declaration that changed since does not count.
            for (name, limits) in share.into_iter().flat_map(|share| share.limits) {
                if let Some(agent) = opened.pipeline.agents.get_mut(&name) {
                    agent.limits = limits;
                }
            }
        }
        Ok(Self {
            opened,
            submission,
            record,
            batches,
        })
    }
}

/// Returns the agents of the stage, with the keys of this node.
///
/// # Errors
/// When one cannot be prepared, or a key is missing.
fn agents_of_stage(
    handed: &HandedJob,
    all: &Agents,
    environment: &BTreeMap<String, String>,
) -> Result<StageAgents, OpsError> {
    let ctx = handed.opened.context();
    let has = |key: &&String| environment.get(*key).is_some_and(|value| !value.is_empty());
    if let Some(key) = handed.record.keys.iter().find(|key| !has(key)) {
        return Err(OpsError::World(format!(
            "`{key}` is not set on this node\nhelp: export it in `setup` under [executor.{}], from a file that only you can read, or let the scheduler pass it on from the run",
            handed.record.executor
        )));
    }
    let stage = ctx.pipeline.stage(&handed.record.stage);
    let asked = stage.map(|stage| of_stage(&ctx, stage, all)).transpose();
    Ok(asked.map_err(OpsError::World)?.unwrap_or_default())
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
