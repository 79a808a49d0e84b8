//! Replaces `faults` in builds without that feature: operations are neither counted nor stopped.

#![allow(
    clippy::unused_self,
    reason = "the methods have the signatures of `faults`"
)]

use std::marker::PhantomData;
use std::path::Path;

#[derive(Default)]
pub(super) struct Faults;

pub(super) struct Operation<'a>(PhantomData<&'a Faults>);

impl Faults {
    pub(super) fn step(&self, _: &str, _: &Path) -> Operation<'_> {
        Operation(PhantomData)
    }

    pub(super) fn step_away(&self, _: &str, _: &Path, _: bool) -> Operation<'_> {
        Operation(PhantomData)
    }

    pub(super) fn step_flush(&self, _: &Path) -> Operation<'_> {
        Operation(PhantomData)
    }

    pub(super) fn step_write(&self, _: &Path) -> Operation<'_> {
        Operation(PhantomData)
    }
}

impl Operation<'_> {
    pub(super) fn is_half(&self) -> bool {
        false
    }

    pub(super) fn is_wanted(&self) -> bool {
        true
    }

    pub(super) fn end(self) -> ! {
        std::process::abort()
    }

    pub(super) fn made(self, _: &Path) {}

    pub(super) fn cut(self, _: &Path, _: u64) {}

    pub(super) fn renamed(self, _: &Path, _: &Path) {}

    pub(super) fn removed(self, _: &Path) {}

    pub(super) fn flushed(self, _: &Path) {}

    pub(super) fn flushed_all(self) {}
}
