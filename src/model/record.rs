//! What is known of a batch that was made: its fingerprint, its outputs and how it went.

use super::fingerprint::{FactKey, Facts};
use super::outcome::Outcome;
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A file that a batch made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Made {
    /// The output's name in the declaration; `marker` for the marker.
    pub name: String,
    /// Where it lies in the workspace.
    pub path: RelPath,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A person's word that an output stands as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pin {
    /// Who said so.
    pub who: String,
    /// Why.
    pub why: String,
}

/// What a stage says of a batch that was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Opinion {
    /// What the stage's `summary` gave; where it has none, what its steps said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// What its steps said, where the stage's `summary` stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Value>,
    /// What the stage's `verdict` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
}

/// A batch that was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BatchRecord {
    /// What the batch is known by; empty for the only batch of a stage.
    pub key: String,
    /// The id of the facts that it shares with other batches of the stage.
    pub shared: String,
    /// The facts that are its own.
    pub facts: Facts,
    /// What it made.
    pub outputs: Vec<Made>,
    /// Elements that came out, where the stage says how to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// What the stage's `summary` gave; where it has none, what its steps said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// What its steps said, where the stage's `summary` stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Value>,
    /// What the stage's `verdict` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// Set when the outputs are a placeholder for a batch that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<Outcome>,
    /// Set when a person pinned the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// An input that changed while the batch ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// Tries that it took.
    pub attempts: u32,
    /// How long the last try took, in milliseconds.
    pub duration_ms: u64,
    /// The run that made it.
    pub run: String,
}

impl BatchRecord {
    /// What the stage says of it.
    pub fn opinion(&self) -> Opinion {
        Opinion {
            summary: self.summary.clone(),
            said: self.said.clone(),
            verdict: self.verdict,
        }
    }

    /// All facts, shared and own.
    pub fn all_facts<'a>(
        &'a self,
        shared: &'a Arc<Facts>,
    ) -> impl Iterator<Item = (&'a FactKey, &'a String)> {
        shared.0.iter().chain(self.facts.0.iter())
    }
}
