//! Batch APIs: many requests are submitted at once and answered within a day, at a lower price.

use super::wire::text;
use crate::fault::{CallFault, ErrorBody, FaultKind};
use crate::http::CallLimit;
use crate::request::Reply;
use jiff::Timestamp;
use serde_json::Value;

/// A provider's batch API.
pub trait BatchApi {
    /// Returns the largest batch that the provider accepts.
    fn limit(&self) -> BatchLimit;

    /// Submits requests as a batch and returns the id of the batch. A request is an id, chosen by the caller, and the bytes of
    /// [`super::ModelApi::body`]. Record the id of the batch first: it is the only way back to the results.
    ///
    /// # Errors
    /// Fails if the provider refuses the batch; with `BadRequest` if it is larger than [`BatchApi::limit`] or an id of a
    /// request is malformed.
    fn submit(
        &self,
        requests: &[(String, Vec<u8>)],
        limit: CallLimit<'_>,
    ) -> Result<String, CallFault>;

    /// Returns the progress of a batch.
    ///
    /// # Errors
    /// Fails if the provider does not report it.
    fn poll(&self, id: &str, limit: CallLimit<'_>) -> Result<BatchProgress, CallFault>;

    /// Fetches the results of a batch that has ended, in any order. A request without a result counts as expired.
    ///
    /// # Errors
    /// Fails if the results cannot be fetched or read.
    fn results(
        &self,
        id: &str,
        limit: CallLimit<'_>,
    ) -> Result<Vec<(String, BatchResult)>, CallFault>;

    /// Lists the latest batches, at most 100. A run that was killed between submitting a batch and recording its id finds the
    /// batch here, by its time, its number of requests, and the ids in its results.
    ///
    /// # Errors
    /// Fails if the provider does not list them.
    fn recent(&self, limit: CallLimit<'_>) -> Result<Vec<SubmittedBatch>, CallFault>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchProgress {
    /// It runs. Both numbers are 0 if the provider has not counted its requests yet.
    Running {
        /// The number of requests that succeeded or failed.
        done: u64,
        /// The number of all requests.
        of: u64,
    },
    /// It has ended, and its results can be fetched.
    Ended,
    /// The provider refused the whole batch for this reason.
    Refused(CallFault),
}

/// A batch that the provider lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedBatch {
    pub id: String,
    /// The time at which it was submitted.
    pub created: Timestamp,
    /// The number of its requests; 0 if the provider has not counted them yet.
    pub requests: u64,
}

/// The result of one request of a batch.
pub type BatchResult = Result<Reply, BatchFault>;

/// The reason why a request of a batch has no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BatchFault {
    /// The call failed as it would have failed outside a batch.
    #[error(transparent)]
    Call(CallFault),
    /// The batch expired before the request was answered. It cost nothing and can be sent again.
    #[error("the batch expired before this request was answered")]
    Expired,
    /// The batch was cancelled before the request was answered.
    #[error("the batch was cancelled before this request was answered")]
    Cancelled,
}

/// The largest batch that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimit {
    /// The number of requests.
    pub requests: usize,
    /// The size of all requests together, in bytes.
    pub bytes: usize,
}

/// How long an id of a request may be. Both providers take letters, digits, `_` and `-`.
const LONGEST_ID: usize = 64;

/// How large results may be, in bytes.
pub(super) const LARGEST: usize = 1 << 30;

/// Refuses requests that a provider would refuse only after the whole batch was sent.
pub(super) fn checked(requests: &[(String, Vec<u8>)], limit: BatchLimit) -> Result<(), CallFault> {
    let refused = |message: String| Err(CallFault::new(FaultKind::BadRequest, message));
    let is_good = |id: &str| {
        !id.is_empty()
            && id.len() <= LONGEST_ID
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    if let Some((id, _)) = requests.iter().find(|(id, _)| !is_good(id)) {
        return refused(format!(
            "the request id `{id}` is not allowed in a batch; use 1 to {LONGEST_ID} letters, digits, `_` and `-`"
        ));
    }
    let bytes: usize = requests
        .iter()
        .map(|(id, body)| id.len() + body.len() + 128)
        .sum();
    if requests.is_empty() || requests.len() > limit.requests || bytes > limit.bytes {
        return refused(format!(
            "{} requests of {bytes} bytes: a batch holds 1 to {} requests and at most {} bytes",
            requests.len(),
            limit.requests,
            limit.bytes
        ));
    }
    Ok(())
}

/// Returns the lines of results, each with its own bytes.
pub(super) fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
}

/// Returns the id of a batch that was just made.
pub(super) fn id_of(batch: &Value) -> Result<String, CallFault> {
    text(&batch["id"]).ok_or_else(|| {
        CallFault::new(
            FaultKind::Unreadable,
            format!("the batch has no id: {batch}"),
        )
    })
}

/// Returns the id of the request that a line of results belongs to.
pub(super) fn request_of(result: &Value, line: &[u8]) -> Result<String, CallFault> {
    text(&result["custom_id"]).ok_or_else(|| {
        let message = "a result has no `custom_id`";
        CallFault::new(FaultKind::Unreadable, message).with_raw(line.to_vec())
    })
}

/// Returns the fault of a request whose result is an error.
pub(super) fn failed(status: Option<u16>, error: &Value, whole: &Value, line: &[u8]) -> BatchFault {
    let error = ErrorBody::of(error);
    let message = error.message.clone().unwrap_or_else(|| whole.to_string());
    BatchFault::Call(error.fault(status, message).with_raw(line.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_refused_is_not_sent() {
        let limit = BatchLimit {
            requests: 2,
            bytes: 1_000,
        };
        let request = |id: &str, size: usize| (id.to_owned(), vec![b' '; size]);
        assert!(checked(&[request("a-1", 10), request("b_2", 10)], limit).is_ok());
        for wrong in [
            vec![],
            vec![request("a b", 1)],
            vec![request("", 1)],
            vec![request(&"x".repeat(65), 1)],
            vec![request("a", 1_000)],
            vec![request("a", 1), request("b", 1), request("c", 1)],
        ] {
            assert_eq!(
                checked(&wrong, limit).map_err(|fault| fault.kind),
                Err(FaultKind::BadRequest)
            );
        }
    }
}
