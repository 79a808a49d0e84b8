//! Results for external clients: a leased batch, the reason why there is none, and the outcome of an answer.
//!
//! `view::external` writes them as sentences.

use crate::ops::plan::{AwaitedApproval, Blocker};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// The next batch, or the reason why there is none.
#[derive(Debug, Clone)]
pub struct NextBatch {
    /// The leased batch. `None`: `nothing` has the reason.
    pub leased: Option<Leased>,
    /// Why no batch was leased.
    pub nothing: Option<Nothing>,
    /// The progress of the stage.
    pub left: Option<Left>,
}

/// A leased batch.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Leased {
    /// The id of the lease, for `submit_batch` and `release_batch`.
    pub lease: String,
    /// When it expires, in UTC: any client can lease the batch then.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub expires: Timestamp,
    /// The stage.
    pub(crate) stage: String,
    /// Its number.
    pub number: u32,
    /// The batch; empty for the only one of its stage.
    pub batch: String,
    /// The agent that the client answers for.
    pub agent: String,
    /// The client that holds the lease.
    pub(crate) client: String,
    /// Questions to answer; 0: the prompt is the question.
    pub questions: u64,
    /// The file with the questions, a JSON array of `{id, question}`; without questions the prompt.
    pub input_file: String,
    /// The exact path to write the answer to.
    pub output_file: String,
    /// The form of the answer: `json`, `text` or `tap-yaml`.
    pub(crate) answer: String,
    /// The file with the JSON Schema of the answer; `None` if the answer has no schema or is not JSON.
    pub(crate) schema_file: Option<String>,
    /// The JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The file with the prompt that a model would get, with the questions and their ids.
    pub prompt_file: String,
    /// The prompt, if the client asked for it.
    pub prompt: Option<String>,
    /// Files attached to the prompt.
    pub(crate) attachments: Vec<String>,
    /// The last failure of the batch, a line each; empty if it did not fail.
    pub failed: Vec<String>,
}

/// Why no batch was leased.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Nothing {
    /// The reason in one word.
    pub reason: WhyNothing,
    /// The stage.
    pub stage: Option<String>,
    /// When the first lease expires, in UTC, if all open batches are leased.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub until: Option<Timestamp>,
    /// The earlier stage that blocks this one.
    pub missing: Option<Blocker>,
    /// The approval that the stage waits for.
    pub approval: Option<AwaitedApproval>,
    /// The batches concerned; of many the first ones.
    pub batches: Vec<String>,
    /// Why the stage, or the first of `batches`, cannot run.
    #[serde(skip)]
    pub problem: Option<String>,
    /// Files that were modified by hand.
    #[serde(skip)]
    pub modified: Vec<String>,
    /// Batches that a run can build because every question is answered.
    #[serde(skip)]
    pub ready: u64,
}

impl Nothing {
    /// Starts with a reason and the stage that it is about.
    pub(super) fn new(reason: WhyNothing, stage: Option<&str>) -> Self {
        Self {
            reason,
            stage: stage.map(str::to_owned),
            ..Self::default()
        }
    }
}

/// Why no batch was leased, in one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyNothing {
    /// Every batch is up to date.
    Complete,
    /// Every open batch is leased.
    Leased,
    /// An earlier stage is not complete.
    Blocked,
    /// A person must approve the open batches first.
    Approval,
    /// Every question is answered: a run builds the open batches.
    Ready,
    /// The stage or a batch cannot run, and an answer would not help.
    Failed,
    /// Outputs of the stage were modified by hand.
    #[serde(rename = "altered")]
    Modified,
    /// No stage, or not this one, asks an external agent.
    #[default]
    NotExternal,
}

/// The progress of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Left {
    /// All batches.
    pub batches: u64,
    /// Batches that are up to date.
    pub done: u64,
    /// Batches that are leased.
    pub leased: u64,
    /// The remaining batches.
    pub open: u64,
}

/// The outcome of an answer.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Submitted {
    /// True if the answer was right and its batch is built.
    pub accepted: bool,
    /// The id of the lease.
    pub(crate) lease: String,
    /// The stage; `None` if there is no such lease.
    pub(crate) stage: Option<String>,
    /// The batch.
    pub(crate) batch: Option<String>,
    /// Why the answer was refused, or its batch was not built. Over MCP, a refusal is an error and this is null.
    #[cfg_attr(debug_assertions, schemars(with = "Option<()>"))]
    pub refused: Option<Refusal>,
    /// Everything that is wrong with the answer. The lease stays: correct these and submit again; valid answers are kept.
    #[serde(skip)]
    pub violations: Vec<Violation>,
    /// Right answers, which are kept.
    pub kept: u64,
    /// Ids of the questions without a right answer.
    pub open: Vec<String>,
    /// Where the wrong answers are kept, in the workspace.
    pub quarantine: Option<String>,
    /// The outputs of the batch, in the workspace.
    pub output_files: Vec<String>,
    /// Elements in the outputs, if they are counted.
    pub(crate) element_count: Option<u64>,
    /// True if the stage asks more about this batch: `next_batch` leases it again.
    pub(crate) more: bool,
    /// The progress of the stage.
    pub left: Option<Left>,
    /// The checkpoint of the stage, if this was its last batch.
    pub checkpoint: Option<String>,
    /// When the lease expires, in UTC, if it stays.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub expires: Option<Timestamp>,
}

/// The outcome of a release.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Released {
    /// True if other clients can lease the batch now.
    pub released: bool,
    /// The id of the lease.
    pub(crate) lease: String,
    /// The stage; `None` if there is no such lease.
    pub(crate) stage: Option<String>,
    /// The batch.
    pub(crate) batch: Option<String>,
    /// Why the lease was not released. Over MCP, a refusal is an error and this is null.
    #[cfg_attr(debug_assertions, schemars(with = "Option<()>"))]
    pub refused: Option<Refusal>,
}

/// Why an answer or a release was refused, or a batch was not built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The batch as `STAGE/BATCH`, or the id of a lease that does not exist.
    pub of: String,
    /// The reason.
    pub why: WhyRefused,
}

impl Refusal {
    /// Returns the code of the reason, for programs.
    pub fn code(&self) -> &'static str {
        match self.why {
            WhyRefused::UnknownLease => "unknown_lease",
            WhyRefused::ForeignLease { .. } => "foreign_lease",
            WhyRefused::LeaseReleased => "lease_released",
            WhyRefused::AlreadySubmitted => "already_submitted",
            WhyRefused::LeaseExpired { .. } => "lease_expired",
            WhyRefused::AlreadyMade => "already_made",
            WhyRefused::Stale => "stale",
            WhyRefused::AnswerMissing { .. } => "answer_missing",
            WhyRefused::Blocked { .. } => "blocked",
            WhyRefused::Modified { .. } => "altered",
            WhyRefused::NotMade { .. } => "not_made",
        }
    }
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyRefused {
    /// The workspace has no such lease.
    UnknownLease,
    /// Another client holds the lease.
    ForeignLease {
        /// The client that holds it.
        holder: String,
        /// The name of the client that called, if it is another one.
        client: Option<String>,
    },
    /// The lease was released.
    LeaseReleased,
    /// The answer was submitted before, and its batch is built.
    AlreadySubmitted,
    /// The lease expired.
    LeaseExpired {
        /// When, in UTC.
        at: Timestamp,
    },
    /// The batch was built meanwhile.
    AlreadyMade,
    /// The inputs of the batch changed since it was leased.
    Stale,
    /// The answer could not be read.
    AnswerMissing {
        /// The file to write it to.
        path: String,
        /// The problem with the file.
        problem: AnswerFile,
    },
    /// An earlier stage blocks the batch.
    Blocked {
        /// The reason.
        problem: String,
    },
    /// An output was modified by hand.
    #[serde(rename = "altered")]
    Modified {
        /// The first such file, in the workspace, if it is known.
        path: Option<String>,
    },
    /// The run did not build the batch.
    NotMade {
        /// The reason; `None` if the run did not reach it.
        problem: Option<String>,
    },
}

/// A problem with the file of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFile {
    /// It does not exist.
    Missing,
    /// It is a folder or a link.
    NotAFile,
    /// It cannot be read: the system's error.
    Unreadable(String),
    /// It is not UTF-8.
    NotUtf8,
}

/// One thing that is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Violation {
    /// The kind of violation: `not_json`, `wrong_shape`, `no_id`, `unknown_id`, `missing`, `doubled` or `schema`; of a check or of
    /// conservation the outcome's code.
    pub code: String,
    /// JSON pointer into the answer; empty for the whole answer.
    pub pointer: String,
    /// The id of the question or element concerned.
    pub id: Option<String>,
    /// The violation, as it was found.
    pub message: String,
    /// What was expected instead.
    #[serde(skip)]
    pub expected: Expected,
}

/// The expectation that an answer violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// One value in the form of the answer.
    Json,
    /// A list with an object for each question.
    List,
    /// The id of a question.
    Id,
    /// One of these ids.
    OneOf(Vec<String>),
    /// An answer to the question.
    Answer,
    /// One answer to the question, not several.
    OneAnswer,
    /// A value that satisfies this keyword of the schema.
    Keyword(String),
    /// Outputs that satisfy the check or schema that failed with this message.
    Outcome(String),
}
