//! The result of `why`.

use crate::ops::inspect::calls::BatchCalls;
use crate::ops::plan::ModifiedOutput;
use crate::ops::plan::planned::is_zero;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::fingerprint::Change;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::model::record::{BatchRecord, FailedKeys, Made, Override, Pin};
use milepost_core::model::stage::Stage;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Explains the state of a stage, a batch or a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Why {
    /// A stage with several batches.
    Stage(StageWhy),
    /// A batch.
    Batch(Box<BatchWhy>),
    /// A file.
    File(Box<FileWhy>),
}

/// Explains the batches of a stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StageWhy {
    /// The stage's name.
    pub stage: String,
    /// The stage's number.
    pub number: u32,
    /// The stage's description.
    pub description: Option<String>,
    /// Why the batches cannot be listed.
    pub problem: Option<String>,
    /// The number of batches.
    pub batches: u64,
    /// Batches that are up to date.
    pub reused: u64,
    /// The batches that are not up to date.
    pub others: Vec<BatchVerdict>,
    /// Batches that no longer exist: a run moves their outputs to quarantine.
    pub gone: Vec<String>,
}

/// The decision on a batch of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchVerdict {
    /// The batch's key.
    pub batch: String,
    /// The decision.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The decision on a batch if a run began now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Will {
        /// The reasons.
        reasons: Vec<Reason>,
    },
    /// It waits for approval.
    Unapproved {
        /// The role of the person who approves.
        by: String,
        /// Why the batch is out of date.
        reasons: Vec<Reason>,
    },
    /// It waits for an external agent.
    Waits {
        /// The agent's name.
        agent: String,
        /// Why the batch is out of date.
        reasons: Vec<Reason>,
    },
    /// It is up to date.
    #[serde(rename = "reused")]
    UpToDate,
    /// Its outputs are restored from quarantine.
    Restore,
    /// Its outputs will be revalidated.
    #[serde(rename = "judge")]
    Revalidate {
        /// The changed facts.
        changes: Vec<Change>,
    },
    /// It runs if one of the conditions holds.
    May {
        /// The conditions.
        conditions: Vec<Condition>,
    },
    /// Outputs were modified by hand: the run stops here.
    #[serde(rename = "altered")]
    Modified {
        /// The files.
        files: Vec<ModifiedOutput>,
    },
    /// It cannot run.
    Impossible {
        /// The reason.
        why: String,
    },
}

/// Explains a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchWhy {
    /// The stage's name.
    pub stage: String,
    /// The batch; empty for the only one of the stage.
    pub batch: String,
    /// The decision.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The run that built the present outputs; `None` if there are none.
    pub made: Option<MadeBy>,
    /// Elements that failed and are missing from the outputs.
    pub failed: Vec<FailedKeys>,
    /// Where the partial output, requests and invalid answers of the last failure are, in the workspace.
    pub quarantine: Option<String>,
    /// Its calls to agents; `None` if there are none.
    pub asked: Option<BatchCalls>,
    /// The files that it reads.
    pub inputs: Vec<InputFile>,
    /// The files that it built.
    pub outputs: Vec<OutputFile>,
    /// The present facts that its outputs depend on, besides the inputs.
    pub made_from: BTreeMap<String, String>,
    /// The present facts that only decide whether its outputs are valid.
    pub judged_by: BTreeMap<String, String>,
}

/// How a batch was built.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct MadeBy {
    /// The id of the run.
    pub run: String,
    /// When it was published, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// The number of attempts.
    pub attempts: u32,
    /// The duration of the last attempt, in seconds.
    pub seconds: f64,
    /// The number of elements in the outputs.
    pub elements: Option<u64>,
    /// The result of the stage's `summary` for the batch.
    pub summary: Option<Value>,
    /// The failure of the batch, if its outputs are a placeholder.
    pub placeholder: Option<Outcome>,
    /// Who accepted modified outputs, and why.
    pub pin: Option<Pin>,
    /// The job of a scheduler that ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobOfBatch>,
}

/// An input of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct InputFile {
    /// The path.
    pub path: String,
    /// Its digest when the batch was built; `None` if the batch did not read it then.
    pub recorded: Option<String>,
    /// Its present digest; `None` if the batch no longer reads it.
    pub present: Option<String>,
    /// The stage and batch that built it; `None` if it is an input of the workspace.
    pub made_by: Option<String>,
}

/// An output of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct OutputFile {
    /// The output's name in the declaration.
    pub(crate) name: String,
    /// The path in the workspace.
    pub path: String,
    /// Its digest when it was built.
    pub digest: Digest,
    /// Its size when it was built, in bytes.
    pub size: u64,
    /// The state of the present file.
    pub state: FileState,
}

/// The state of a recorded output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The file has the recorded bytes.
    AsMade,
    /// The file has the recorded bytes, which were modified by hand and accepted.
    Accepted,
    /// The file was modified by hand.
    #[serde(rename = "altered")]
    Modified,
    /// The file was deleted.
    Deleted,
}

/// Explains a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FileWhy {
    /// The path in the workspace, or in the project with the prefix `project:`.
    pub path: String,
    /// The present digest; `None` if the file does not exist.
    pub digest: Option<Digest>,
    /// How it was built; `None` if no stage builds it.
    pub made: Option<FileMade>,
    /// The inputs it was built from.
    pub from: Vec<Origin>,
    /// The number of inputs that `from` leaves out.
    pub more: u64,
    /// The stages and batches whose records list it as an input.
    pub read_by: Vec<String>,
    /// The number of readers that `read_by` leaves out.
    pub more_readers: u64,
    /// The stages that are declared to read it.
    pub declared: Vec<String>,
}

/// How a file was built.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FileMade {
    /// The stage's name.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// The output's name in the declaration.
    pub output: String,
    /// The digest of the recorded output.
    pub digest: Digest,
    /// The accepted modification by hand, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<Override>,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The state of the present file.
    pub state: FileState,
    /// The id of the run.
    pub run: String,
    /// When it was published, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// The calls of its batch to agents; `None` if there are none.
    pub asked: Option<BatchCalls>,
}

/// An input that a file was built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Origin {
    /// The path.
    pub path: String,
    /// Its digest when it was read.
    pub digest: String,
    /// The stage and batch that built it; `None` if it is an input of the workspace.
    pub made_by: Option<String>,
    /// The inputs that it was built from; empty if they are listed elsewhere in the tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Origin>,
    /// The number of inputs that `from` leaves out.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
}

impl StageWhy {
    /// Starts without batches.
    pub(super) fn of(stage: &Stage) -> Self {
        Self {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            ..Self::default()
        }
    }
}

impl FileState {
    /// Compares the present digest with the recorded output.
    pub(crate) fn of(there: Option<Digest>, made: &Made, record: &BatchRecord) -> Self {
        match there {
            None => Self::Deleted,
            Some(there) if there == made.digest && record.is_by_hand(&made.path) => Self::Accepted,
            Some(there) if there == made.digest => Self::AsMade,
            Some(_) => Self::Modified,
        }
    }
}
