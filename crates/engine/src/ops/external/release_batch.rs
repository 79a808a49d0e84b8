//! Releases a lease.

use super::owner::LeaseClient;
use super::refusals;
use super::results::Released;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use milepost_store::store::leases::{LeaseState, Leases};

/// Releases a lease, so that another client can lease the batch. Right answers are kept. The lease must belong to `owner`, and to a
/// client of the name `client`, if there is one.
///
/// # Errors
/// When there is no project, or the disk fails.
pub fn release_batch(
    request: &Request,
    lease: &str,
    client: Option<&str>,
    owner: Option<&LeaseClient>,
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
        released.refused = Some(refusals::unknown(lease));
        return Ok(released);
    };
    released.stage = Some(found.stage.clone());
    released.batch = Some(found.batch.clone());
    if let Some(refusal) = refusals::foreign(&found, client, owner) {
        released.refused = Some(refusal);
        return Ok(released);
    }
    if found.state != LeaseState::Leased {
        released.refused = Some(refusals::ended(&found));
        return Ok(released);
    }
    found.state = LeaseState::Released;
    leases.put(&found)?;
    released.released = true;
    Ok(released)
}
