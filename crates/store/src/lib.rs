//! The disk: the one writer, the journal, manifests, locks and records of a workspace, and the checks of files.
//!
//! Every path in a workspace is in [`store::layout`], and every change of the disk goes through [`store::disk::Disk`].

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
