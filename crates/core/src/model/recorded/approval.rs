//! A person's approval of a stage that declares `[approve]`: by whom, when and why, and which batches.

use super::pin::Pin;
use crate::base::digest::{Digest, Hasher};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;

/// A person's decision that batches of a stage may run, as checkpoints, `status`, `why` and `verify` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Approval {
    /// The role that the stage declares.
    pub role: String,
    /// The person who approved.
    pub by: String,
    /// When, in UTC; `None` if the record does not say.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub at: Option<Timestamp>,
    /// The reason that they gave.
    pub why: String,
    /// The number of approved batches.
    pub batches: u64,
    /// The digest of these batches with their fingerprints.
    pub facts: Digest,
}

/// The last approval of a stage, with the batches that may run under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ApprovedStage {
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
    /// The ids of the facts of approved batches, by batch; empty once the stage is complete.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<String, String>,
}

impl Approval {
    /// Returns the approval that an event records.
    pub fn of(role: &str, pin: &Pin, batches: &BTreeMap<String, String>, facts: Digest) -> Self {
        Self {
            role: role.to_owned(),
            by: pin.who.clone(),
            at: pin.at,
            why: pin.why.clone(),
            batches: batches.len() as u64,
            facts,
        }
    }

    /// Returns the digest of batches with the ids of their facts.
    pub fn digest(batches: &BTreeMap<String, String>) -> Digest {
        let mut hasher = Hasher::new();
        for (batch, facts) in batches {
            // A hasher takes everything.
            let _ = writeln!(hasher, "{facts}  {batch}");
        }
        hasher.finish()
    }
}
