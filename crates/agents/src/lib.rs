//! Agents: what answers a request. One file or folder a provider.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod anthropic;
pub mod batches;
pub mod cli;
pub mod client;
pub mod fault;
pub mod http;
pub mod limits;
pub mod openai;
pub mod policy;
pub mod prices;
pub mod request;
pub mod rules;
pub mod salvage;
mod schema_fit;
pub mod secret;
mod sse;
pub mod tap_yaml;
mod versions;
mod wire;
