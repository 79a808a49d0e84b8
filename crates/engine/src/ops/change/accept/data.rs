//! The options and the result of `accept`.

use crate::run::record::quarantined::KeptFile;
use milepost_core::base::digest::Digest;
use milepost_core::model::fingerprint::Change;
use serde::Serialize;

/// The outputs or changes to accept, and the reason.
#[derive(Debug, Clone, Default)]
pub struct AcceptOptions {
    /// `STAGE` or `STAGE/BATCH`; at least one.
    pub targets: Vec<String>,
    /// The reason, for the journal.
    pub why: String,
    /// The person; by default the user of this process.
    pub who: Option<String>,
    /// Kinds of facts (`file`, `param`, …) or single facts (`file templates/report.md`) whose changes are adopted. Empty to accept outputs
    /// that were modified by hand.
    pub changes: Vec<String>,
    /// The outputs of one batch that the person was shown, by [`shown`](super::shown). If they have changed since, nothing is
    /// accepted.
    pub expected: Option<Digest>,
}

/// The accepted outputs and changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Accepted {
    /// Outputs accepted as they are.
    pub pinned: Vec<Pinned>,
    /// Batches that adopted changes without a run.
    pub adopted: Vec<Adopted>,
    /// Checkpoints that were rewritten.
    pub checkpoints: Vec<String>,
    /// Checkpoints and progress files modified by hand, which went to quarantine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<KeptFile>,
}

/// An output accepted as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Pinned {
    /// The stage's name.
    pub stage: String,
    /// The batch's key.
    pub batch: String,
    /// The path in the workspace.
    pub path: String,
    /// The recorded digest.
    pub old: Digest,
    /// The accepted digest.
    pub new: Digest,
}

/// A batch that adopted changes without a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Adopted {
    /// The stage's name.
    pub stage: String,
    /// The batch's key.
    pub batch: String,
    /// The adopted changes.
    pub changes: Vec<Change>,
}
