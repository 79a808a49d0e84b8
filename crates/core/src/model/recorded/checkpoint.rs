//! The checkpoint `stage_N_complete.json` and the progress file of a stage.

use super::call::Spent;
use super::record::Override;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the files that this program writes. It reads every older one.
pub const FORMAT: u32 = 1;

/// Whether everything is done, or something is named as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every batch is done, every output valid, conservation holds.
    Complete,
    /// Some batches or keys are named as failed.
    Partial,
}

impl Status {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}

/// `stage_N_complete.json`: what a stage took in and gave out, with checksums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// The stage's name.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// Whether everything is done.
    pub status: Status,
    /// When it became so, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The only output, in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub output_file: Option<RelPath>,
    /// The outputs as declared, when there are several files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_files: Vec<String>,
    /// Elements that came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_count: Option<u64>,
    /// Digests of what went in and what came out.
    pub checksums: Checksums,
    /// What the stage's `summary` says of its batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Batches that failed, with the code and message of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, String>,
    /// What the stage's `verdict` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// Outputs that a person modified by hand and accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// Batches of the stage.
    pub batches: u64,
    /// What the outputs were made from, beside the inputs.
    pub fingerprint: BTreeMap<String, String>,
    /// Input files with their digests (of at most 100 files; all of them are in the journal).
    pub inputs: BTreeMap<String, String>,
    /// Schemas that the outputs were validated by.
    pub schemas: BTreeMap<String, String>,
    /// The list of all files with their digests.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub manifest: RelPath,
    /// The run that finished the stage.
    pub run_id: String,
    /// Sum of the batches' durations, in seconds.
    pub duration_s: f64,
    /// What the calls of agents cost from which its outputs were made; none: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The version of Milepost.
    pub milepost: String,
    /// The version of this file's form.
    pub format: u32,
}

/// Digests of what went in and what came out: of one file its SHA-256, of several that of their list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Checksums {
    /// Of the input file, or of the list of inputs (`digest  path` lines, sorted by path).
    pub input: Digest,
    /// Of the output file, or of the manifest's pages one after another.
    pub output: Digest,
}

/// The progress file of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Progress {
    /// The stage's name.
    pub stage: String,
    /// Batches that there are.
    pub total_batches: u64,
    /// Numbers (positions from 1 on) of the batches that are done: each, beyond 1,000 as ranges such as `"1-1250"`.
    pub completed_batches: Vec<Value>,
    /// The lowest that runs.
    pub current_batch: Option<u64>,
    /// Keys of the batches that failed.
    pub failed_batches: Vec<String>,
    /// How far the stage is.
    pub status: ProgressStatus,
    /// The run.
    pub run_id: String,
    /// Its process.
    pub pid: u32,
    /// When this was written, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub updated: Timestamp,
    /// The digest of this file without this line, by which a modification by hand is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Digest>,
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProgressStatus {
    /// Batches run or wait.
    InProgress,
    /// All are done.
    Complete,
    /// All are done or named as failed.
    Partial,
    /// A batch failed, and the stage stopped.
    Failed,
    /// The run was stopped, or told to do only a part.
    Held,
}
