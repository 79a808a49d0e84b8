//! The pure layers of Milepost: no disk, clock, environment, process or network. See `docs/explanation/design.md`.

#![warn(unreachable_pub)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod base;
pub mod decl;
pub mod expr;
pub mod model;
pub mod plan;
