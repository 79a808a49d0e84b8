//! The checkpoint `stage_N_complete.json` and the progress file of a stage.

use super::approval::Approval;
use super::call::Spent;
use super::record::Override;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the files that this program writes. It reads every older one.
pub const FORMAT: u32 = 2;

/// The status of a stage with a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every batch is finished, every output is valid, and conservation holds.
    Complete,
    /// Some batches or elements failed.
    Partial,
}

impl Status {
    /// Returns the word in files and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}

/// `stage_N_complete.json`: the inputs and outputs of a stage, with checksums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// The stage's name.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// The status.
    pub status: Status,
    /// When the stage was finished, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The path of the only output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub output_file: Option<RelPath>,
    /// The outputs as declared, if there are several files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_files: Vec<String>,
    /// The number of elements in the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_count: Option<u64>,
    /// The digests of inputs and outputs.
    pub checksums: Checksums,
    /// The result of the stage's `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Batches that failed, with the code and message of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, String>,
    /// The result of the stage's `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// Outputs that a person modified by hand and accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// The approval under which batches ran, if the stage declares `[approve]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The number of batches.
    pub batches: u64,
    /// The fingerprint of the outputs, without the inputs.
    pub fingerprint: BTreeMap<String, String>,
    /// Input files of the first 100 batches, at most 100, with their digests; all of them are in the manifest.
    pub inputs: BTreeMap<String, String>,
    /// The schemas of the outputs, with their digests.
    pub schemas: BTreeMap<String, String>,
    /// The list of all files with their digests.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub manifest: RelPath,
    /// The run that finished the stage.
    pub run_id: String,
    /// The sum of the batches' durations in seconds.
    pub duration_s: f64,
    /// The cost of the calls whose answers the outputs contain; `None` if there were no calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The version of Milepost.
    pub milepost: String,
    /// The version of the file format.
    pub format: u32,
}

/// The digests of inputs and outputs: the SHA-256 of a single file, or of the list of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Checksums {
    /// The digest of the input file; of several, that of their list (`digest  path` lines, sorted by path). If the manifest has
    /// several pages: of the digests of their inputs, a line each.
    pub input: Digest,
    /// The digest of the output file; of several, that of the manifest's page, or of the list of its pages (`sha256sum page_*`).
    pub output: Digest,
}

/// The progress file of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Progress {
    /// The stage's name.
    pub stage: String,
    /// The number of batches.
    pub total_batches: u64,
    /// The positions of the finished batches, from 1; beyond 1,000 as ranges such as `"1-1250"`.
    pub completed_batches: Vec<Value>,
    /// The lowest position of a running batch.
    pub current_batch: Option<u64>,
    /// Keys of the batches that failed.
    pub failed_batches: Vec<String>,
    /// The progress of the stage.
    pub status: ProgressStatus,
    /// The run.
    pub run_id: String,
    /// Its process.
    pub pid: u32,
    /// When this was written, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub updated: Timestamp,
    /// The digest of this file without this line, which shows a modification by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Digest>,
}

/// The progress of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProgressStatus {
    /// Batches run or wait.
    InProgress,
    /// All batches are finished.
    Complete,
    /// All batches are finished or failed.
    Partial,
    /// A batch failed, and the stage stopped.
    Failed,
    /// The run was stopped, or runs only a selection.
    Held,
}
