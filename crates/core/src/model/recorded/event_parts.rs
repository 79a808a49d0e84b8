//! Parts of the events: iterations, programs that were started, files to be renamed.

use crate::base::digest::Digest;
use crate::base::path::RelPath;
use serde::{Deserialize, Serialize};

/// The result of an iteration of `[refine]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Round {
    /// Its number, from 1.
    pub round: u32,
    /// The result of `until`.
    pub right: bool,
    /// The result of `score`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The result of the stage's `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<serde_json::Value>,
}

/// A program that was started for a batch or as a service, which belongs to no stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Child {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// Its process id, which is also its process group.
    pub pid: u32,
    /// The start time in clock ticks since the machine started. It distinguishes a later process with the same id.
    pub start_time: u64,
    /// The id of the machine's start.
    pub boot_id: String,
    /// The value of `MILEPOST_ATTEMPT` in its environment.
    pub token: String,
}

/// A file to be renamed into place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Publish {
    /// The complete file in scratch, in the workspace.
    pub scratch: RelPath,
    /// The target path, in the workspace.
    pub path: RelPath,
    /// The digest of the file at the target; `None` if there is none.
    pub old: Option<Digest>,
    /// The digest of the new file.
    pub new: Digest,
    /// The path in quarantine for a target that was modified by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<RelPath>,
    /// True for a marker, which exists only while the other files of its batch do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marker: bool,
}
