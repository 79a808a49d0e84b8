//! The client that owns a lease: its session, or its name if it has no session.

use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_store::store::leases::{Lease, LeaseOwner};
use milepost_store::store::lock::Holder;
use std::collections::BTreeSet;

/// A client by the id of its server, not by the name that it chooses itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseClient {
    /// The client.
    pub id: Digest,
    /// The open sessions of the server, this one among them; `None` for a client without a session.
    pub open: Option<BTreeSet<Digest>>,
}

impl LeaseClient {
    /// Returns the client as the owner of a lease.
    pub(super) fn owner(&self, lease: &str, now: Timestamp) -> LeaseOwner {
        LeaseOwner {
            client: self.id,
            server: self
                .open
                .as_ref()
                .map(|_| Holder::this(lease, now, "milepost mcp")),
        }
    }
}

/// Returns true if a client may submit or release a lease. A lease that was taken without an owner, or whose session has ended,
/// belongs to every client that knows its id.
pub(super) fn may_use(lease: &Lease, client: Option<&LeaseClient>) -> bool {
    let Some(owner) = &lease.owner else {
        return true;
    };
    let is_here = |server: &Holder| server.pid == std::process::id() && server.is_alive();
    let open = client.and_then(|client| client.open.as_ref());
    match &owner.server {
        None => client.is_some_and(|client| client.id == owner.client),
        Some(server) if is_here(server) => {
            client.is_some_and(|client| client.id == owner.client)
                || open.is_some_and(|open| !open.contains(&owner.client))
        }
        Some(server) => !server.is_alive(),
    }
}
