//! leases
