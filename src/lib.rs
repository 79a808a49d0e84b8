//! The faces of Milepost: command line, MCP server, watch. Everything else is in the packages under `crates/`.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod cli;
pub mod mcp;
pub mod view;
pub mod watch;
