//! Releases a lease.

use super::busy;
use super::refusals;
use super::results::Released;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use crate::ops::run::StopFlag;
use milepost_store::store::leases::LeaseState;

/// Releases a lease, so that another client can lease the batch. Valid answers are kept. The lease must belong to this process or to
/// none that lives, and to a client of the name `client`, if there is one. While the batch of another client is built, it waits until
/// `stop` is set.
///
/// # Errors
/// When there is no project, or the disk fails. [`OpsError::LeasesBusy`] if a batch is being built when `stop` is set.
pub fn release_batch(
    request: &Request,
    lease: &str,
    client: Option<&str>,
    stop: &StopFlag,
) -> Result<Released, OpsError> {
    let opened = open(request)?;
    opened.workspace.prepare(&opened.disk)?;
    let leases = busy::lock(&opened, stop)?;
    let mut released = Released {
        lease: lease.to_owned(),
        ..Released::default()
    };
    let Some(mut found) = leases.get(lease)? else {
        released.refused = Some(refusals::unknown(lease));
        return Ok(released);
    };
    released.stage = Some(found.stage.clone());
    released.batch = Some(found.batch.clone());
    released.refused = refusals::unusable(&found, client, opened.clock.now());
    released.released = released.refused.is_none();
    if released.released {
        found.state = LeaseState::Released;
        leases.put(&found)?;
    }
    Ok(released)
}
