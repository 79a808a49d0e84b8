//! The faces of Milepost: command line, MCP server, watch, web page. Everything else is in the packages under `crates/`.

#![warn(unreachable_pub)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod cli;
pub(crate) mod mcp;
pub(crate) mod page;
pub(crate) mod serve;
pub mod view;
pub(crate) mod watch;
pub(crate) mod web;
