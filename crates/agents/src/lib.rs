//! Clients of model APIs and of agent command lines, and the table of rules that answers without either.

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
pub mod limits;
pub mod policy;
pub mod prices;
pub mod request;
pub mod rules;
pub mod secret;
