//! Agents: clients of model APIs and of command-line tools, and the rules file that answers without a model.
//!
//! A provider is one file or folder in `api/providers`. [`fault`] classifies failed calls, [`policy`] decides what to do about
//! them, and [`limits`] when the next call may be sent.

#![warn(unreachable_pub)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod answer;
pub mod api;
pub mod cli;
pub mod fault;
pub mod http;
pub mod policy;
pub mod prices;
pub mod rate_limits;
pub mod request;
pub mod rules;
pub mod secret;
