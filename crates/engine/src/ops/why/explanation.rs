//! What `why` tells of a stage, a batch or a file, as data.

use crate::ops::inspect::calls::BatchCalls;
use crate::ops::plan::ModifiedOutput;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::fingerprint::Change;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::model::record::{BatchRecord, FailedKeys, Made, Override, Pin};
use milepost_core::model::stage::Stage;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why something is as it is.
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

/// What becomes of the batches of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StageWhy {
    /// The stage.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// What it is for.
    pub description: Option<String>,
    /// Why nothing can be told of its batches.
    pub problem: Option<String>,
    /// Batches that there are.
    pub batches: u64,
    /// Batches that are reused.
    pub reused: u64,
    /// The other batches.
    pub others: Vec<BatchVerdict>,
    /// Batches that there are no more: their outputs are retired.
    pub gone: Vec<String>,
}

/// What becomes of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchVerdict {
    /// The batch.
    pub batch: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What becomes of a batch when a run begins at this moment, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Will {
        /// Why.
        reasons: Vec<Reason>,
    },
    /// It waits for someone outside to answer.
    Waits {
        /// Who: an agent, by name.
        agent: String,
        /// Why it must be made.
        reasons: Vec<Reason>,
    },
    /// It is reused.
    Reused,
    /// Its outputs are validated again.
    Judge {
        /// What differs.
        changes: Vec<Change>,
    },
    /// It runs if one of these comes true.
    May {
        /// What must come true.
        conditions: Vec<Condition>,
    },
    /// The run stops: somebody altered what was made.
    Altered {
        /// The files.
        files: Vec<ModifiedOutput>,
    },
    /// It cannot run.
    Impossible {
        /// Why not.
        why: String,
    },
}

/// Everything that is known of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchWhy {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one of the stage.
    pub batch: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Who made what is there; none when nothing is.
    pub made: Option<MadeBy>,
    /// Elements that failed, and are not among what was made.
    pub failed: Vec<FailedKeys>,
    /// Where is kept what it left when it last failed, with requests and answers that were not valid, in the workspace.
    pub quarantine: Option<String>,
    /// What it asked of agents; none: nothing.
    pub asked: Option<BatchCalls>,
    /// Files that it reads.
    pub inputs: Vec<InputFile>,
    /// Files that it made.
    pub outputs: Vec<OutputFile>,
    /// The facts that its outputs depend on beside the inputs, as they are at present.
    pub made_from: BTreeMap<String, String>,
    /// The facts that only say what is valid, as they are at present.
    pub judged_by: BTreeMap<String, String>,
}

/// Who made a batch, and how that went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct MadeBy {
    /// The run.
    pub run: String,
    /// When it was finished, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// Tries that it took.
    pub attempts: u32,
    /// How long the last try took, in seconds.
    pub seconds: f64,
    /// Elements that came out.
    pub elements: Option<u64>,
    /// What the stage's `summary` says of it.
    pub summary: Option<Value>,
    /// How the batch failed whose placeholder this is.
    pub placeholder: Option<Outcome>,
    /// Who pinned the outputs as they are, and why.
    pub pin: Option<Pin>,
}

/// A file that a batch reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct InputFile {
    /// The file.
    pub path: String,
    /// Its digest when the batch was made; none: it was not read then.
    pub recorded: Option<String>,
    /// Its digest at present; none: it is not read any more.
    pub present: Option<String>,
    /// The stage and batch that made it; none: people put it there.
    pub made_by: Option<String>,
}

/// A file that a batch made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct OutputFile {
    /// The output's name in the declaration.
    pub(crate) name: String,
    /// The file, in the workspace.
    pub path: String,
    /// Its digest when it was made.
    pub digest: Digest,
    /// Its size then, in bytes.
    pub size: u64,
    /// What lies there at present.
    pub state: FileState,
}

/// What lies at the path of a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The recorded bytes.
    AsMade,
    /// The recorded bytes, which a person modified by hand and accepted.
    Accepted,
    /// Other bytes.
    Altered,
    /// Nothing.
    Deleted,
}

/// Everything that is known of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FileWhy {
    /// The file: in the workspace, or in the project with the prefix `project:`.
    pub path: String,
    /// The digest of what lies there; none: nothing does.
    pub digest: Option<Digest>,
    /// Who made it; none: people put it there.
    pub made: Option<FileMade>,
    /// What it was made from.
    pub from: Vec<Origin>,
    /// What `from` leaves out.
    pub more: u64,
    /// Stages and batches that read it, as recorded.
    pub read_by: Vec<String>,
    /// What `read_by` leaves out.
    pub more_readers: u64,
    /// Stages that are declared to read it.
    pub declared: Vec<String>,
}

/// Who made a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FileMade {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// The output's name in the declaration.
    pub output: String,
    /// The digest of what was made.
    pub digest: Digest,
    /// The accepted modification by hand, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<Override>,
    /// Its size, in bytes.
    pub(crate) size: u64,
    /// What lies there at present.
    pub state: FileState,
    /// The run.
    pub run: String,
    /// When it was finished, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// What its batch asked of agents; none: nothing.
    pub asked: Option<BatchCalls>,
}

/// A file that something was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Origin {
    /// The file.
    pub path: String,
    /// What it was then.
    pub digest: String,
    /// The stage and batch that made it; none: people put it there.
    pub made_by: Option<String>,
    /// What that was made from; empty when it is told elsewhere in the tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Origin>,
    /// What `from` leaves out.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl StageWhy {
    /// Of a stage without batches.
    pub(super) fn of(stage: &Stage) -> Self {
        Self {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            problem: None,
            batches: 0,
            reused: 0,
            others: Vec::new(),
            gone: Vec::new(),
        }
    }
}

impl FileState {
    /// Of what lies there, where this was recorded.
    pub(crate) fn of(there: Option<Digest>, made: &Made, record: &BatchRecord) -> Self {
        match there {
            None => Self::Deleted,
            Some(there) if there == made.digest && record.is_by_hand(&made.path) => Self::Accepted,
            Some(there) if there == made.digest => Self::AsMade,
            Some(_) => Self::Altered,
        }
    }
}
