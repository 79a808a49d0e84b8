//! Batches at a provider: which calls are in one, and what an earlier run left of them.

use super::call::{Heard, Sent};
use crate::base::digest::Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Something of a run that is counted from 1 on: a call, or a batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId {
    /// The run.
    pub run: String,
    /// Its number in the run.
    pub number: u64,
}

/// A batch that is about to be submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submitting {
    /// The agent that is asked.
    pub agent: String,
    /// Whose API, and where: a batch is known nowhere else.
    pub place: String,
    /// The id of each request in the batch, with the number of its call in this run.
    pub requests: Vec<(String, u64)>,
    /// The digest of all that is sent.
    pub digest: Digest,
}

/// What earlier runs left of an agent's batches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    /// Batches of which some requests were not heard of.
    pub batches: Vec<LeftBatch>,
    /// Calls that were answered, and whose answer nobody used.
    pub answered: Vec<LeftCall>,
    /// The provider's ids of all batches that are known.
    pub known: BTreeSet<String>,
}

/// A batch that an earlier run submitted, or was about to.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftBatch {
    /// Which.
    pub batch: CallId,
    /// When it was about to be submitted.
    pub when: Timestamp,
    /// How many requests it has.
    pub size: u64,
    /// The provider's id; several where it is one of these; none where the run ended before it was kept.
    pub ids: Vec<String>,
    /// Calls that were not heard of, each with the id of its request.
    pub calls: Vec<(String, LeftCall)>,
}

/// A call of an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftCall {
    /// Which.
    pub call: CallId,
    /// What was sent.
    pub sent: Sent,
    /// What was heard.
    pub heard: Option<Heard>,
}
