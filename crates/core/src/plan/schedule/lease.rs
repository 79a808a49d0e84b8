//! The next batch of a stage that an external client can answer.

use super::observe::ObserveError;
use crate::base::digest::Digest;
use crate::model::reason::Reason;
use crate::plan::decide::Decision;
use crate::plan::scan::{BatchScan, StageScan};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A lease of a batch that has not expired.
#[derive(Debug, Clone)]
pub struct HeldLease {
    /// When it expires.
    pub expires: Timestamp,
    /// The addresses of the leased questions.
    pub addresses: Vec<Digest>,
}

/// The questions of a batch for external agents.
#[derive(Debug)]
pub enum LeaseRequest<R> {
    /// This request, with the addresses of its questions.
    Asks(R, Vec<Digest>),
    /// Nothing: every question is answered.
    Nothing,
    /// Known only when the batch runs: the reason.
    Unknown(String),
}

/// The batch to lease.
#[derive(Debug)]
pub struct Candidate<'a, R> {
    pub batch: &'a BatchScan,
    pub request: R,
    /// How it failed with the answers that it had; empty if it did not.
    pub failed: Vec<String>,
}

/// The batches that are out of date and cannot be leased.
#[derive(Debug, Default)]
pub struct NotLeased {
    /// Leased to another client, until then.
    pub leased: BTreeMap<String, Timestamp>,
    /// Wait for a person's approval.
    pub unapproved: Vec<String>,
    /// Completely answered: a run can build them.
    pub ready: Vec<String>,
    /// Cannot be built, with the reason.
    pub failed: Vec<(String, String)>,
}

/// Decides which batch is leased next: the first that needs an external agent and is not leased; then a batch that failed although
/// it was answered, with all of its questions. `lease_of` returns the present lease of a batch; `ask` returns the questions of a
/// batch, with `true` including the answered ones; `waits` returns true for a batch that waits for approval. Also returns the
/// batches that cannot be leased, with the reasons.
///
/// # Errors
/// If `ask` fails.
#[expect(clippy::type_complexity)]
pub fn next_lease<'a, R>(
    found: &'a StageScan,
    now: Timestamp,
    lease_of: &dyn Fn(&BatchScan) -> Option<HeldLease>,
    waits: &dyn Fn(&BatchScan) -> bool,
    ask: &mut dyn FnMut(&BatchScan, bool) -> Result<LeaseRequest<R>, ObserveError>,
) -> Result<(NotLeased, Option<Candidate<'a, R>>), ObserveError> {
    let mut not = NotLeased::default();
    let mut asked = BTreeSet::new();
    for batch in &found.batches {
        if let Some(lease) = lease_of(batch) {
            asked.extend(lease.addresses);
            not.leased.insert(batch.batch.key.clone(), lease.expires);
        }
    }
    let mut failed: Vec<(&BatchScan, Vec<String>)> = Vec::new();
    for batch in &found.batches {
        let key = &batch.batch.key;
        let reasons = match &batch.decision {
            Ok(Decision::Will(reasons)) => reasons,
            Err(missed) => {
                not.failed.push((key.clone(), missed.why.clone()));
                continue;
            }
            Ok(_) => continue,
        };
        if not.leased.contains_key(key) {
            continue;
        }
        if waits(batch) {
            not.unapproved.push(key.clone());
            continue;
        }
        match ask(batch, false)? {
            LeaseRequest::Asks(_, addresses) if addresses.iter().any(|one| asked.contains(one)) => {
                // Another client has leased one of these questions.
                let until = not.leased.values().max().copied();
                not.leased.insert(key.clone(), until.unwrap_or(now));
            }
            LeaseRequest::Asks(request, _) => {
                let candidate = Candidate {
                    batch,
                    request,
                    failed: Vec::new(),
                };
                return Ok((not, Some(candidate)));
            }
            LeaseRequest::Nothing => match failure(reasons) {
                Some(why) => failed.push((batch, why)),
                None => not.ready.push(key.clone()),
            },
            LeaseRequest::Unknown(why) => not.failed.push((key.clone(), why)),
        }
    }
    for (batch, why) in failed {
        if let LeaseRequest::Asks(request, _) = ask(batch, true)? {
            let candidate = Candidate {
                batch,
                request,
                failed: why,
            };
            return Ok((not, Some(candidate)));
        }
        not.failed.push((batch.batch.key.clone(), why.join("; ")));
    }
    Ok((not, None))
}

/// Returns how a batch failed that runs because of that.
fn failure(reasons: &[Reason]) -> Option<Vec<String>> {
    reasons.iter().find_map(|reason| match reason {
        Reason::Failed { outcome } => {
            let mut lines = vec![outcome.to_string()];
            lines.extend(outcome.details.iter().cloned());
            Some(lines)
        }
        _ => None,
    })
}
