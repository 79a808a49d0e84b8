//! What clients outside are told: a batch that is leased, why there is none, and what became of an answer.

use crate::ops::plan::Blocker;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// The next batch, or why there is none.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct NextBatch {
    /// The batch that was leased; none: `nothing` says why.
    pub leased: Option<Leased>,
    /// Why no batch was leased.
    pub nothing: Option<Nothing>,
    /// How far the stage is.
    pub left: Option<Left>,
}

/// A batch that was leased.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Leased {
    /// The lease: what `submit_batch` and `release_batch` want.
    pub lease: String,
    /// When it expires, in UTC: the batch then goes to whoever asks next.
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
    /// The client that has it.
    pub(crate) client: String,
    /// Questions to answer; 0: the prompt is the question.
    pub questions: u64,
    /// The file with what is asked: a JSON array of `{id, question}`; without questions the prompt.
    pub input_file: String,
    /// The file to write the answer to: exactly this one.
    pub output_file: String,
    /// The form of the answer: `json`, `text` or `tap-yaml`.
    pub(crate) answer: String,
    /// The file with the JSON Schema of the answer; none: it is no JSON, or has no schema.
    pub(crate) schema_file: Option<String>,
    /// The JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The file with the prompt: what a model would be sent, the questions with their ids in it.
    pub prompt_file: String,
    /// The prompt, if it was wished for.
    pub prompt: Option<String>,
    /// Files that belong to the prompt.
    pub(crate) attachments: Vec<String>,
    /// How the batch failed when it was last tried, with what was wrong.
    pub failed: Vec<String>,
}

/// Why no batch was leased.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Nothing {
    /// In one word.
    pub reason: WhyNothing,
    /// The stage that it is about.
    pub(crate) stage: Option<String>,
    /// In a sentence.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// When the first lease of another expires, in UTC, where all batches are leased.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub until: Option<Timestamp>,
    /// The stage that is not complete, and what is wrong with it, where one is in the way.
    pub missing: Option<Blocker>,
    /// Batches that it is about.
    pub(crate) batches: Vec<String>,
}

/// Why no batch was leased, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyNothing {
    /// Every batch is made.
    Complete,
    /// Every batch that is open is leased.
    Leased,
    /// A stage that this one reads from is not complete.
    Blocked,
    /// The batches that are open need nobody: a run makes them.
    Ready,
    /// A batch cannot be made, and nobody can answer for it.
    Failed,
    /// Somebody altered what the stage made.
    Altered,
    /// The stage, or every stage, asks nobody outside.
    NotExternal,
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Left {
    /// Batches that there are.
    pub batches: u64,
    /// Batches that are made.
    pub done: u64,
    /// Batches that clients have at present.
    pub leased: u64,
    /// The others.
    pub open: u64,
}

/// What became of an answer.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Submitted {
    /// Whether it was right, and its batch is made.
    pub accepted: bool,
    /// The lease.
    pub(crate) lease: String,
    /// The stage; none where the lease is not known.
    pub(crate) stage: Option<String>,
    /// The batch.
    pub(crate) batch: Option<String>,
    /// Why it was not taken at all, or not published.
    pub refused: Option<Refusal>,
    /// Everything that is wrong with it. The lease is kept: correct these, and hand in again; what was right need not be repeated.
    pub violations: Vec<Violation>,
    /// Answers in it that were right, and are kept.
    pub kept: u64,
    /// Ids of questions that have no right answer yet.
    pub open: Vec<String>,
    /// Where what was wrong was set aside, in the workspace.
    pub quarantine: Option<String>,
    /// Files that were made, in the workspace.
    pub output_files: Vec<String>,
    /// Elements in them, where they are counted.
    pub(crate) element_count: Option<u64>,
    /// Whether the stage asks for more for this batch: `next_batch` leases it again.
    pub(crate) more: bool,
    /// How far the stage is.
    pub left: Option<Left>,
    /// The checkpoint of the stage, where this was its last batch.
    pub checkpoint: Option<String>,
    /// When the lease expires, in UTC, where it is kept.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub expires: Option<Timestamp>,
}

/// Why an answer was not taken, or not published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Refusal {
    /// In one word: `unknown_lease`, `foreign_lease`, `lease_expired`, `lease_released`, `already_submitted`, `already_made`,
    /// `stale`, `answer_missing`, `blocked`, `altered` or `not_made`.
    pub code: String,
    /// In a sentence.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// One thing that is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Violation {
    /// What kind of thing: `not_json`, `wrong_shape`, `no_id`, `unknown_id`, `missing`, `doubled`, `schema`; of a check or of
    /// conservation the outcome's code.
    pub code: String,
    /// JSON pointer into the answer; empty for the whole.
    pub pointer: String,
    /// The id of the question or element that it is about.
    pub id: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What was expected.
    pub expected: String,
    /// What to do.
    pub hint: String,
}
