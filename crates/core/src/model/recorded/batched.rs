//! Batches at a provider: which calls are in one, and what an earlier run left of them.

use super::call::{CallResponse, SentCall};
use crate::base::digest::Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The id of a call or of a provider batch: its number in its run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId {
    pub run: String,
    /// The number in the run, from 1.
    pub number: u64,
}

/// A provider batch that is about to be submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submitting {
    pub agent: String,
    /// The provider and its address: ids of batches are valid nowhere else.
    pub place: String,
    /// The id of each request in the batch, with the number of its call in this run.
    pub requests: Vec<(String, u64)>,
    /// The digest of the request body.
    pub digest: Digest,
}

/// Provider batches and answers of earlier runs that are still unused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    /// Provider batches with requests that have no known result.
    pub batches: Vec<LeftBatch>,
    /// Answered calls whose answers were not used.
    pub answered: Vec<LeftCall>,
    /// The provider's ids of all known batches.
    pub known: BTreeSet<String>,
}

/// A provider batch that an earlier run submitted, or was about to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftBatch {
    pub batch: CallId,
    /// When it was about to be submitted.
    pub when: Timestamp,
    /// The number of requests.
    pub size: u64,
    /// The provider's ids that it may have; empty if the run ended before the id was recorded.
    pub ids: Vec<String>,
    /// Calls without a known result, each with the id of its request.
    pub calls: Vec<(String, LeftCall)>,
}

/// A call of an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftCall {
    pub call: CallId,
    /// The request as recorded.
    pub sent: SentCall,
    /// The response, if one is recorded.
    pub response: Option<CallResponse>,
}
