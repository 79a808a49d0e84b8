//! Records of requests to agents: answers, calls, provider batches, and leases for external agents.

pub mod answers;
mod asking;
pub mod batches;
pub mod calls;
pub mod checksummed;
pub mod leases;
pub mod named_calls;
