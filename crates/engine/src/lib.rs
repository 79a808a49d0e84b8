//! Milepost as a library: steps, runs, and one function a capability. See `docs/design.md` for the layers.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod ops;
pub mod run;
pub mod steps;
