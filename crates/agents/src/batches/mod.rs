//! Batch APIs: many requests sent at once, answered within a day at a lower price.

mod anthropic;
mod openai;

use super::fault::{CallFault, FaultKind};
use super::request::Reply;
use jiff::Timestamp;

/// How far a batch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Requests that are done, of how many; 0 of 0 where the provider does not say yet.
    Running {
        /// Done, whether well or not.
        done: u64,
        /// All of them.
        of: u64,
    },
    /// Its results can be harvested.
    Ended,
    /// Nothing of it was done, for this reason.
    Refused(CallFault),
}

/// A batch that the provider has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its id.
    pub id: String,
    /// When it was made.
    pub created: Timestamp,
    /// How many requests it has; 0 while the provider has not counted them.
    pub requests: u64,
}

/// What became of one request of a batch.
pub type BatchResult = Result<Reply, BatchFault>;

/// Why a request of a batch has no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BatchFault {
    /// As a call of its own would have failed.
    #[error(transparent)]
    Call(CallFault),
    /// The day was over before it was asked: it cost nothing, and can be sent again.
    #[error("the batch expired before this request was answered")]
    Expired,
    /// The batch was cancelled before it was asked.
    #[error("the batch was cancelled before this request was answered")]
    Cancelled,
}

/// How much one batch may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Requests.
    pub requests: usize,
    /// Bytes of all that is sent.
    pub bytes: usize,
}

/// How long an id of a request may be. Both providers take letters, digits, `_` and `-`.
const LONGEST_ID: usize = 64;

/// How large results may be, in bytes.
const LARGEST: usize = 1 << 30;

/// Refuses what a provider would refuse after all was sent.
fn checked(requests: &[(String, Vec<u8>)], limit: Limit) -> Result<(), CallFault> {
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
            "`{id}` is no id for a request of a batch: 1 to {LONGEST_ID} letters, digits, `_` and `-`"
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

/// The lines of results, each with its own bytes.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_refused_is_not_sent() {
        let limit = Limit {
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
