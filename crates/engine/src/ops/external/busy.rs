//! Waits for the leases of a workspace: a client has them while its batch is built.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::ops::run::StopFlag;
use milepost_store::store::leases::Leases;
use std::time::Duration;

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Locks the leases of a workspace, and waits for another client that has them until `stop` is set.
///
/// # Errors
/// [`OpsError::LeasesBusy`] if another client has them when `stop` is set; when the disk fails.
pub(super) fn lock(opened: &OpenProject, stop: &StopFlag) -> Result<Leases, OpsError> {
    loop {
        if let Some(leases) = Leases::try_lock(&opened.disk, &opened.workspace.layout)? {
            return Ok(leases);
        }
        if stop.is_set() {
            return Err(OpsError::LeasesBusy);
        }
        stop.pause(PAUSE);
    }
}
