//! What `accept` takes and returns.

use crate::run::record::quarantined::KeptFile;
use milepost_core::base::digest::Digest;
use milepost_core::model::fingerprint::Change;
use serde::Serialize;

/// What is to be accepted.
#[derive(Debug, Clone, Default)]
pub struct AcceptOptions {
    /// `STAGE` or `STAGE/BATCH`; at least one.
    pub targets: Vec<String>,
    /// Why, for the journal.
    pub why: String,
    /// Who; by default the user of this process.
    pub who: Option<String>,
    /// Kinds of facts (`file`, `param`, …), or facts (`file templates/report.md`), whose change is adopted. Empty: outputs
    /// that were altered are accepted.
    pub changes: Vec<String>,
}

/// What was accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Accepted {
    /// Outputs that are pinned as they are.
    pub pinned: Vec<Pinned>,
    /// Batches that adopted changes without a run.
    pub adopted: Vec<Adopted>,
    /// Checkpoints that were written again.
    pub checkpoints: Vec<String>,
    /// Checkpoints and progress files that a person modified, which went to quarantine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<KeptFile>,
}

/// An output that is pinned as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Pinned {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// The file, in the workspace.
    pub path: String,
    /// What was recorded.
    pub old: Digest,
    /// What it is.
    pub new: Digest,
}

/// A batch that adopted changes without a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Adopted {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// What changed.
    pub changes: Vec<Change>,
}
