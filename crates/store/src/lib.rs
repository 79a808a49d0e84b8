//! The disk under a workspace: the one writer, journal, manifests, locks, and what files are checked against.

#![warn(unreachable_pub)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod check;
pub mod store;
