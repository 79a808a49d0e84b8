//! Agents: what answers a request. One file or folder a provider.

pub mod rules;
