//! What happens in a workspace, as the journal records it.

use super::forced::Forced;
use super::record::{BatchRecord, FailedKeys, Made, Opinion, Pin};
use super::usage::Usage;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
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
    /// When, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The workspace's own id, the same over all runs.
    pub session_id: String,
    /// The run that wrote it.
    pub run_id: String,
    /// Who acted: a step's `role`, else the stage's name, else `milepost`.
    pub agent_name: String,
    /// The coarse kind, for people and other tools.
    pub event_type: EventType,
    /// The precise kind and its data.
    #[serde(flatten)]
    pub event: Event,
    /// One line for people.
    pub summary: String,
    /// Files that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_refs: Vec<String>,
    /// The digest of the record before, without its line end; none for the first of all.
    pub prev: Option<Digest>,
}

/// The coarse kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// Something was started.
    Invoke,
    /// A stage takes over what another made.
    Handoff,
    /// Something was judged.
    Review,
    /// Something that stood before was taken back or made anew.
    Revision,
    /// Something was finished.
    Complete,
    /// Something failed.
    Error,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// A run began. Whatever an earlier run left running is waiting again.
    RunStarted {
        /// What was asked for, as on the command line.
        command: String,
        /// The version of Milepost.
        version: String,
    },
    /// The first record of a segment: everything before is in the manifests.
    Sealed {
        /// The segment before, and its last record, is what `prev` names.
        segment: u64,
        /// The digests of the checkpoints as they were written, by stage.
        checkpoints: BTreeMap<String, Digest>,
        /// What is left of runs with `--force`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forced: Vec<Forced>,
    },
    /// A run with `--force` selected these batches: each stays forced until it is rebuilt.
    Forced {
        /// The stage.
        stage: String,
        /// The batches.
        batches: BTreeSet<String>,
        /// Whether agents are asked anew, as `--fresh` says.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fresh: bool,
        /// Whether that holds for batches that the stage turns out to have, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    },
    /// A person withdrew `--force` from these batches, by `--no-force`.
    ForceDropped {
        /// The stage.
        stage: String,
        /// The batches; empty: all that are left of the stage.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        batches: BTreeSet<String>,
    },
    /// A stage begins; the facts that its batches share.
    StageStarted {
        /// The stage.
        stage: String,
        /// Its number.
        number: u32,
        /// The id of the facts.
        shared: String,
        /// The facts.
        facts: Facts,
        /// Batches that there are.
        batches: u64,
        /// Batches that will run.
        will: u64,
    },
    /// A stage first reads what others made.
    Handoff {
        /// The stage that reads.
        stage: String,
        /// The stages that made it.
        from: Vec<String>,
        /// Files handed over.
        files: u64,
        /// Elements in them, where the makers say how to count them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elements: Option<u64>,
        /// What is missing in them: batches and elements that failed, with how, by `stage/batch`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        failed: BTreeMap<String, String>,
        /// What the makers' `summary` says, by stage.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        summaries: BTreeMap<String, serde_json::Value>,
    },
    /// A batch is tried.
    AttemptStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// From 1 on.
        attempt: u32,
    },
    /// A step of a batch begins: where several act in turn, or in rounds.
    StepStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// What the step makes.
        out: String,
        /// The round of `[refine]`, from 1 on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
    },
    /// A program was started for a batch.
    ChildStarted(Child),
    /// An agent was called. Request and answer are kept in `.milepost/calls/RUN`, under its number.
    Called {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// Which of the run's calls it was.
        number: u64,
        /// The agent that was asked, and who that is.
        agent: String,
        /// The model that was asked; empty where none is named.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// The model that answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<String>,
        /// Questions in it.
        questions: u64,
        /// The digest of the request.
        request: Digest,
        /// The digest of what was heard.
        answer: Digest,
        /// `answered`, or how it failed.
        outcome: String,
        /// Tokens used.
        usage: Usage,
        /// What it cost, in billionths of a dollar; none when nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// What an agent answered was not valid, or not all of it: the rest is asked again, or fails by it.
    AnswersRefused {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// Which of the run's calls it was.
        number: u64,
        /// Valid answers in it: they are kept.
        valid: u64,
        /// What is wrong, a line each.
        violations: Vec<String>,
    },
    /// A round of `[refine]` was judged by `until`.
    RoundJudged {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The round.
        #[serde(flatten)]
        round: Round,
    },
    /// Another round begins, since the one before was not right.
    RoundStarted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// Its number, from 2 on.
        round: u32,
        /// How the one before was.
        why: String,
    },
    /// The stage's `verdict` on a batch that was made.
    Verdict {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// What it is.
        verdict: bool,
        /// What the stage's `summary` says of the batch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<serde_json::Value>,
    },
    /// A service was started, or still runs where a new segment of the journal begins.
    ServiceStarted {
        /// Its process, in the place of the batch its name.
        child: Child,
        /// Whether it was recorded before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// A service was ended.
    ServiceEnded {
        /// Its name.
        service: String,
        /// What `MILEPOST_ATTEMPT` was in its environment.
        token: String,
    },
    /// A try failed, and another follows.
    AttemptFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// From 1 on.
        attempt: u32,
        /// How.
        outcome: Outcome,
    },
    /// A batch failed for good in this run.
    BatchFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// How.
        outcome: Outcome,
        /// Where what it left is kept, in the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quarantine: Option<String>,
    },
    /// Elements of a batch failed, and the batch is made without them.
    ElementsFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// Which, and how.
        failed: Vec<FailedKeys>,
        /// Where requests and answers that were not valid are kept, in the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quarantine: Option<String>,
    },
    /// A batch was stopped before it ended.
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
        /// What is recorded of it.
        record: Box<BatchRecord>,
        /// The files to rename.
        files: Vec<Publish>,
        /// What it made before and makes no more: from where to where in quarantine, both in the workspace.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        retired: BTreeMap<RelPath, RelPath>,
    },
    /// Everything published before is in place, what was retired is in quarantine, and the folders are flushed.
    Barrier,
    /// What was published was in neither place after a crash: the batch runs again.
    Lost {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// What lies at its paths, which Milepost made earlier.
        remains: BTreeMap<RelPath, Digest>,
    },
    /// Files that no live batch makes any more go to quarantine; the batch is forgotten.
    Retired {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// From where to where, both in the workspace.
        files: BTreeMap<RelPath, RelPath>,
        /// Whether the stage no longer has the batch. A failed batch that it still has stays failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gone: bool,
    },
    /// Batches were validated again under other schemas or checks, and hold.
    Judged {
        /// The stage.
        stage: String,
        /// The id of the facts that they share from here on.
        shared: String,
        /// The facts.
        facts: Facts,
        /// The batches.
        batches: Vec<String>,
        /// What the stage says of them from here on, where that is not what is recorded.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        opinions: BTreeMap<String, Opinion>,
    },
    /// A person accepted outputs as they are.
    Accepted {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// What the outputs are.
        outputs: Vec<Made>,
        /// Who and why.
        pin: Pin,
    },
    /// A person adopted a change of the declaration without a run.
    ChangeAccepted {
        /// The stage.
        stage: String,
        /// The kinds of facts that were adopted.
        change: String,
        /// The id of the facts that the batches share from here on.
        shared: String,
        /// The facts.
        facts: Facts,
        /// The batches with their own facts.
        batches: BTreeMap<String, Facts>,
        /// Who and why.
        pin: Pin,
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
    /// A checkpoint was removed before what it vouches for is replaced.
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
        /// In one word: `complete`, `partial`, `failed`, `altered`, `interrupted`, `held`.
        status: String,
        /// Batches that ran.
        ran: u64,
        /// Batches that were reused.
        reused: u64,
        /// Batches that failed.
        failed: u64,
    },
}

impl Event {
    /// The stage that it is about, if it is about one.
    pub fn stage(&self) -> Option<&str> {
        match self {
            Self::StageStarted { stage, .. }
            | Self::Handoff { stage, .. }
            | Self::AttemptStarted { stage, .. }
            | Self::StepStarted { stage, .. }
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
            | Self::RunFinished { .. } => None,
        }
    }

    /// Whether it is about this batch, alone or among others.
    pub fn is_about(&self, key: &str) -> bool {
        match self {
            Self::AttemptStarted { batch, .. }
            | Self::StepStarted { batch, .. }
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
            Self::Forced { batches, .. } | Self::ForceDropped { batches, .. } => {
                batches.contains(key)
            }
            _ => false,
        }
    }
}

/// How a round of `[refine]` was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Round {
    /// Its number, from 1 on.
    pub round: u32,
    /// Whether it was right: what `until` gave.
    pub right: bool,
    /// What `score` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What the stage's `summary` says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<serde_json::Value>,
}

/// A program that was started for a batch, or as a service, which is of no stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Child {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// Its process id, which is also its process group.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did: tells a later process with the same id apart.
    pub start_time: u64,
    /// Which start of the machine.
    pub boot_id: String,
    /// What `MILEPOST_ATTEMPT` is in its environment.
    pub token: String,
}

/// One file on its way into place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Publish {
    /// Where it lies whole, in the workspace.
    pub scratch: RelPath,
    /// Where it goes, in the workspace.
    pub path: RelPath,
    /// What lay there; none: nothing.
    pub old: Option<Digest>,
    /// What it is.
    pub new: Digest,
    /// Where what lay there is kept, when it was altered by somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<RelPath>,
    /// Whether it is a marker: never there while the other files of its batch are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marker: bool,
}
