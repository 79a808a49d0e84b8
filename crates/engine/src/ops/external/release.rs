//! Gives a leased batch back.

use super::shapes::Refusal;
use super::wording;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use milepost_store::store::leases::{LeaseState, Leases};
use serde::Serialize;

/// What became of a lease that was given back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Released {
    /// Whether the batch is free for whoever asks next.
    pub released: bool,
    /// The lease.
    pub(crate) lease: String,
    /// The stage; none where the lease is not known.
    pub(crate) stage: Option<String>,
    /// The batch.
    pub(crate) batch: Option<String>,
    /// Why it was not.
    pub refused: Option<Refusal>,
}

/// Gives a leased batch back, so that it goes to whoever asks next. What was answered rightly stays kept. `client`: only if it is
/// theirs.
///
/// # Errors
/// When there is no project, or the disk fails.
pub fn release_batch(
    request: &Request,
    lease: &str,
    client: Option<&str>,
) -> Result<Released, OpsError> {
    let opened = open(request)?;
    opened.workspace.prepare(&opened.disk)?;
    let leases = Leases::lock(&opened.disk, &opened.workspace.layout)?;
    let mut released = Released {
        released: false,
        lease: lease.to_owned(),
        stage: None,
        batch: None,
        refused: None,
    };
    let Some(mut found) = leases.get(lease)? else {
        released.refused = Some(wording::unknown_lease(lease));
        return Ok(released);
    };
    released.stage = Some(found.stage.clone());
    released.batch = Some(found.batch.clone());
    if let Some(refusal) = wording::not_theirs(&found, client) {
        released.refused = Some(refusal);
        return Ok(released);
    }
    if found.state != LeaseState::Leased {
        released.refused = Some(wording::over(&found));
        return Ok(released);
    }
    found.state = LeaseState::Released;
    leases.put(&found)?;
    released.released = true;
    Ok(released)
}
