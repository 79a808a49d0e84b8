//! The events of a workspace, as the journal records them.

pub use super::event_parts::{Child, Publish, Round};

use super::approval::ApprovedStage;
use super::forced::Forced;
use super::record::{BatchRecord, FailedKeys, Made, Opinion, Pin};
use super::usage::Usage;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::executor::ExecutorName;
use crate::model::fingerprint::Facts;
use crate::model::money::NanoUsd;
use crate::model::outcome::Outcome;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Record {
    /// The time, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The workspace's own id, the same over all runs.
    pub session_id: String,
    /// The run that wrote it.
    pub run_id: String,
    /// The step's `role`, else the stage's name, else `milepost`.
    pub agent_name: String,
    /// The coarse kind, for people and other tools.
    pub event_type: EventType,
    /// The precise kind and its data.
    #[serde(flatten)]
    pub event: Event,
    /// One line for people.
    pub summary: String,
    /// The files that the event concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_refs: Vec<String>,
    /// The digest of the previous record without its line end; `None` for the very first.
    pub prev: Option<Digest>,
}

/// The coarse kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// A run, stage or attempt started.
    Invoke,
    /// A stage reads the outputs of another, or a role takes over from another.
    Handoff,
    /// Outputs or answers were checked.
    Review,
    /// Earlier results were withdrawn or rebuilt.
    Revision,
    /// A step, batch, stage or run finished.
    Complete,
    /// A batch, stage or call failed.
    Error,
}

/// An event of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// A run began. Batches that an earlier run left running are waiting again.
    RunStarted {
        /// The command line.
        command: String,
        /// The version of Milepost.
        version: String,
    },
    /// The manifests contain everything before this record, which is the first one of each segment but the first.
    Sealed {
        /// The number of the segment of the record before; `prev` names that record.
        segment: u64,
        /// The digests of the checkpoints as they were written, by stage.
        checkpoints: BTreeMap<String, Digest>,
        /// The number of pages of each manifest, by stage.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pages: BTreeMap<String, u64>,
        /// Batches of runs with `--force` that are not rebuilt yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forced: Vec<Forced>,
        /// The last approvals, by stage, with the batches that may run under them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        approvals: BTreeMap<String, ApprovedStage>,
    },
    /// A run with `--force` selected these batches: each stays forced until it is rebuilt.
    Forced {
        /// The stage.
        stage: String,
        /// The batches.
        batches: BTreeSet<String>,
        /// True if agents are asked again (`--fresh`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fresh: bool,
        /// True if the same holds for batches that are not known yet.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    },
    /// A person withdrew `--force` from these batches, by `--no-force`.
    ForceDropped {
        /// The stage.
        stage: String,
        /// The batches; empty: all forced batches of the stage.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        batches: BTreeSet<String>,
    },
    /// A stage begins, with the facts that its batches share.
    StageStarted {
        /// The stage.
        stage: String,
        /// Its number.
        number: u32,
        /// The id of the facts.
        shared: String,
        /// The facts.
        facts: Facts,
        /// The number of batches.
        batches: u64,
        /// The number of batches that will run.
        will: u64,
    },
    /// A stage reads the outputs of other stages for the first time.
    Handoff {
        /// The stage that reads.
        stage: String,
        /// The stages that wrote the files.
        from: Vec<String>,
        /// The number of files.
        files: u64,
        /// The number of elements in them, if the stages declare how to count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elements: Option<u64>,
        /// The batches and elements that failed, with the failure, by `stage/batch`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        failed: BTreeMap<String, String>,
        /// The results of the stages' `summary`, by stage.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        summaries: BTreeMap<String, serde_json::Value>,
    },
    /// An attempt at a batch begins.
    AttemptStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Batches of a stage were submitted to a scheduler, as an array of jobs.
    JobsSubmitted {
        /// The stage.
        stage: String,
        /// The scheduler.
        executor: ExecutorName,
        /// The scheduler's id of the array.
        id: String,
        /// The number of jobs.
        jobs: u64,
        /// The number of batches.
        batches: u64,
    },
    /// A step of a batch begins; recorded if a stage has roles or iterations.
    StepStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The output of the step.
        out: String,
        /// The iteration of `[refine]`, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
    },
    /// A step of a batch has written its output; recorded like its start.
    StepFinished {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The output of the step.
        out: String,
        /// The iteration of `[refine]`, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
        /// The result of the step's `summary`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<serde_json::Value>,
    },
    /// A step of a batch takes over what steps of another role wrote.
    StepHandoff {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The role that wrote it.
        from: String,
        /// The outputs of its steps.
        outs: Vec<String>,
        /// The iteration of `[refine]` that takes over, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
        /// The results of the steps' `summary`, by output.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        summaries: BTreeMap<String, serde_json::Value>,
    },
    /// A program was started for a batch.
    ChildStarted(Child),
    /// An agent was called. `.milepost/calls/RUN` keeps request and answer under the call's number.
    Called {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The number of the call in the run.
        number: u64,
        /// The agent, with its provider.
        agent: String,
        /// The requested model; empty if the agent names none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// The model that answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<String>,
        /// The number of questions.
        questions: u64,
        /// The digest of the request.
        request: Digest,
        /// The digest of the response.
        answer: Digest,
        /// `answered`, or the kind of failure.
        outcome: String,
        /// Tokens used.
        usage: Usage,
        /// The cost in billionths of a dollar; `None` if it is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
        /// Why the cost is the reserved amount; `None` if it is measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        estimated: Option<super::call::Estimated>,
        /// The duration in milliseconds.
        took_ms: u64,
    },
    /// Some or all answers of an agent are invalid: they are asked again, or fail.
    AnswersRefused {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The number of the call in the run.
        number: u64,
        /// The number of valid answers, which are kept.
        valid: u64,
        /// The violations, one a line.
        violations: Vec<String>,
    },
    /// `until` judged an iteration of `[refine]`.
    RoundJudged {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The round.
        #[serde(flatten)]
        round: Round,
    },
    /// Another iteration begins, because the previous one did not satisfy `until`.
    RoundStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// Its number, from 2.
        round: u32,
        /// The result of the previous iteration.
        why: String,
    },
    /// The stage's `verdict` on a finished batch.
    Verdict {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The result of `verdict`.
        verdict: bool,
        /// The result of `summary` for the batch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<serde_json::Value>,
    },
    /// A service was started, or still runs when a new segment of the journal begins.
    ServiceStarted {
        /// Its process; `batch` holds the name of the service.
        child: Child,
        /// True if an earlier segment recorded it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// A service was ended.
    ServiceEnded {
        /// Its name.
        service: String,
        /// The value of `MILEPOST_ATTEMPT` in its environment.
        token: String,
    },
    /// An attempt failed, and another follows.
    AttemptFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The failure.
        outcome: Outcome,
    },
    /// A batch failed for good in this run.
    BatchFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The failure.
        outcome: Outcome,
        /// The folder with its leftover files, in the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quarantine: Option<String>,
    },
    /// Elements of a batch failed, and the batch is finished without them.
    ElementsFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The elements, with their failures.
        failed: Vec<FailedKeys>,
        /// The folder with invalid requests and answers, in the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quarantine: Option<String>,
    },
    /// A batch was cancelled.
    BatchCancelled {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
    },
    /// A batch is finished once this record is durable: its files are whole in scratch, and are renamed next.
    Published {
        /// The stage.
        stage: String,
        /// The record of the batch.
        record: Box<BatchRecord>,
        /// The files to rename.
        files: Vec<Publish>,
        /// Earlier outputs that it no longer writes, each with its path in quarantine.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        retired: BTreeMap<RelPath, RelPath>,
    },
    /// Everything published before is in place, what was retired is in quarantine, and the folders are flushed.
    Barrier,
    /// After a crash, published files were in neither place: the batch runs again.
    Lost {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The files at its paths that Milepost wrote earlier, with their digests.
        remains: BTreeMap<RelPath, Digest>,
    },
    /// Files that no batch writes any more go to quarantine, and the batch is forgotten.
    Retired {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The paths before and after, in the workspace.
        files: BTreeMap<RelPath, RelPath>,
        /// True if the stage no longer has the batch. A failed batch that it still has stays failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gone: bool,
    },
    /// Batches were revalidated by changed schemas or checks, and passed.
    Judged {
        /// The stage.
        stage: String,
        /// The id of the facts that they share from now on.
        shared: String,
        /// The facts.
        facts: Facts,
        /// The batches.
        batches: Vec<String>,
        /// The new results of `summary` and `verdict`, if they differ from the record.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        opinions: BTreeMap<String, Opinion>,
    },
    /// A person accepted outputs as they are.
    Accepted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The outputs as they are.
        outputs: Vec<Made>,
        /// The person and the reason.
        pin: Pin,
    },
    /// A person accepted a change of the declaration without a run.
    ChangeAccepted {
        /// The stage.
        stage: String,
        /// The kinds of facts that were accepted.
        change: String,
        /// The id of the facts that the batches share from now on.
        shared: String,
        /// The facts.
        facts: Facts,
        /// The batches with their own facts.
        batches: BTreeMap<String, Facts>,
        /// The person and the reason.
        pin: Pin,
    },
    /// A person approved batches of a stage that declares `[approve]`: they may run as they are.
    Approved {
        /// The stage.
        stage: String,
        /// The role that the stage declares.
        by: String,
        /// The digest of the batches with their fingerprints.
        facts: Digest,
        /// The id of the facts of each approved batch.
        batches: BTreeMap<String, String>,
        /// The person and the reason.
        pin: Pin,
    },
    /// A person's corrections in a workbook were added to a table, by `milepost import-review`.
    CorrectionsImported {
        /// The name of the workbook.
        file: String,
        /// The table.
        into: String,
        /// The digest of the table before; `None` if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Digest>,
        /// The digest of the table after.
        to: Digest,
        /// The number of corrections.
        added: u64,
        /// The first corrections, each with its cell, its person and its reason.
        corrections: Vec<String>,
    },
    /// A stage is complete or partial, and its checkpoint says so.
    CheckpointWritten {
        /// The stage.
        stage: String,
        /// Its number.
        number: u32,
        /// `complete` or `partial`.
        status: super::checkpoint::Status,
        /// The digest of the checkpoint file.
        digest: Digest,
    },
    /// A checkpoint was removed before the files that it describes are replaced.
    CheckpointRemoved {
        /// The stage.
        stage: String,
        /// Its number.
        number: u32,
    },
    /// A stage that is no longer declared was forgotten; its files were retired before.
    StageForgotten {
        /// The stage.
        stage: String,
    },
    /// A run ended.
    RunFinished {
        /// One word: `complete`, `partial`, `failed`, `altered`, `interrupted` or `held`.
        status: String,
        /// The number of batches that ran.
        ran: u64,
        /// The number of batches that were up to date.
        reused: u64,
        /// The number of batches that failed.
        failed: u64,
    },
}

impl Event {
    /// Returns the stage that the event concerns, if there is one.
    pub fn stage(&self) -> Option<&str> {
        match self {
            Self::StageStarted { stage, .. }
            | Self::Handoff { stage, .. }
            | Self::JobsSubmitted { stage, .. }
            | Self::AttemptStarted { stage, .. }
            | Self::StepStarted { stage, .. }
            | Self::StepFinished { stage, .. }
            | Self::StepHandoff { stage, .. }
            | Self::ChildStarted(Child { stage, .. })
            | Self::Called { stage, .. }
            | Self::AnswersRefused { stage, .. }
            | Self::RoundJudged { stage, .. }
            | Self::RoundStarted { stage, .. }
            | Self::Verdict { stage, .. }
            | Self::AttemptFailed { stage, .. }
            | Self::BatchFailed { stage, .. }
            | Self::ElementsFailed { stage, .. }
            | Self::BatchCancelled { stage, .. }
            | Self::Published { stage, .. }
            | Self::Lost { stage, .. }
            | Self::Retired { stage, .. }
            | Self::Judged { stage, .. }
            | Self::Accepted { stage, .. }
            | Self::ChangeAccepted { stage, .. }
            | Self::Approved { stage, .. }
            | Self::CheckpointWritten { stage, .. }
            | Self::CheckpointRemoved { stage, .. }
            | Self::Forced { stage, .. }
            | Self::ForceDropped { stage, .. }
            | Self::StageForgotten { stage } => Some(stage),
            Self::RunStarted { .. }
            | Self::Sealed { .. }
            | Self::ServiceStarted { .. }
            | Self::ServiceEnded { .. }
            | Self::Barrier
            | Self::CorrectionsImported { .. }
            | Self::RunFinished { .. } => None,
        }
    }

    /// Returns the files that the event puts in place.
    pub fn published(&self) -> &[Publish] {
        match self {
            Self::Published { files, .. } => files,
            _ => &[],
        }
    }

    /// Returns true if the event concerns this batch, alone or among others.
    pub fn is_about(&self, key: &str) -> bool {
        match self {
            Self::AttemptStarted { batch, .. }
            | Self::StepStarted { batch, .. }
            | Self::StepFinished { batch, .. }
            | Self::StepHandoff { batch, .. }
            | Self::ChildStarted(Child { batch, .. })
            | Self::Called { batch, .. }
            | Self::AnswersRefused { batch, .. }
            | Self::RoundJudged { batch, .. }
            | Self::RoundStarted { batch, .. }
            | Self::Verdict { batch, .. }
            | Self::AttemptFailed { batch, .. }
            | Self::BatchFailed { batch, .. }
            | Self::ElementsFailed { batch, .. }
            | Self::BatchCancelled { batch, .. }
            | Self::Lost { batch, .. }
            | Self::Retired { batch, .. }
            | Self::Accepted { batch, .. } => batch == key,
            Self::Published { record, .. } => record.key == key,
            Self::Judged { batches, .. } => batches.iter().any(|batch| batch == key),
            Self::ChangeAccepted { batches, .. } => batches.contains_key(key),
            Self::Approved { batches, .. } => batches.contains_key(key),
            Self::Forced { batches, .. } | Self::ForceDropped { batches, .. } => {
                batches.contains(key)
            }
            _ => false,
        }
    }
}
