//! Leases belong to a client.
