//! Milepost: a Make-like state-machine runner over files. See `docs/design.md` for the layers.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod agents;
pub mod base;
pub mod check;
pub mod cli;
pub mod decl;
pub mod expr;
pub mod mcp;
pub mod model;
pub mod ops;
pub mod plan;
pub mod run;
pub mod steps;
pub mod store;
pub mod view;
pub mod watch;
