//! The part of a batch's context that calls need. Threads of several calls share it.

use crate::steps::batch_context::{AttemptLimits, AttemptObserver, BatchContext, OutputDir};
use crate::steps::calls::Calls;
use crate::steps::cancel::CancelToken;
use crate::steps::command::StopSignal;
use milepost_core::model::outcome::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a request has no reply.
pub(crate) enum CallError {
    /// It is too long; it can be sent in parts.
    TooLong(Outcome),
    Failed(Outcome),
}

/// The part of a batch's context that calls need.
pub(crate) struct CallContext<'a> {
    /// The name of the stage.
    pub(crate) stage: &'a str,
    /// `classify/batch_1`, for messages.
    pub(crate) name: &'a str,
    pub(crate) calls: &'a dyn Calls,
    pub(crate) observer: &'a dyn AttemptObserver,
    pub(crate) stop: &'a dyn StopSignal,
    pub(crate) cancel: &'a Arc<CancelToken>,
    /// Returns the time that the stage has left; `None` if it has no limit.
    pub(crate) left: &'a (dyn Fn() -> Option<Duration> + Sync),
    pub(crate) limits: AttemptLimits,
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The working folder of programs.
    pub(crate) folder: &'a Path,
    pub(crate) token: &'a str,
    pub(crate) is_dry_run: bool,
    outputs: &'a dyn OutputDir,
    log: Mutex<&'a mut (dyn Write + Send)>,
    /// How many requests have no answer yet, this one included.
    open: AtomicUsize,
    /// The names of files that all calls read.
    shared: Mutex<BTreeSet<String>>,
}

impl<'a> CallContext<'a> {
    /// Returns the context of this many concurrent requests.
    pub(crate) fn of(ctx: &'a mut BatchContext<'_>, requests: usize) -> Self {
        Self {
            stage: &ctx.stage.name,
            name: ctx.name,
            calls: ctx.calls,
            observer: ctx.observer,
            stop: ctx.stop,
            cancel: ctx.cancel,
            left: ctx.left,
            limits: ctx.limits,
            environment: ctx.environment,
            folder: ctx.folder,
            token: ctx.token,
            is_dry_run: ctx.is_dry_run,
            outputs: ctx.outputs,
            log: Mutex::new(ctx.log),
            open: AtomicUsize::new(requests),
            shared: Mutex::default(),
        }
    }

    /// Notes that a request has its answer, or will have none.
    pub(crate) fn ended(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many requests of all running attempts may wait for one provider batch.
    pub(crate) fn running(&self) -> usize {
        let more = self.open.load(Ordering::Relaxed).saturating_sub(1);
        self.observer.running().saturating_add(more)
    }

    /// Returns true if no other request of the batch is open.
    pub(crate) fn is_alone(&self) -> bool {
        self.open.load(Ordering::Relaxed) <= 1
    }

    /// Writes a file of one call and returns its absolute path.
    ///
    /// # Errors
    /// When the file system fails.
    pub(crate) fn write_own(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        self.outputs.write_helper(name, bytes)
    }

    /// Writes a file that is the same for all calls, once: another call may be reading it.
    ///
    /// # Errors
    /// When the file system fails.
    pub(crate) fn write_shared(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut shared = lock(&self.shared);
        if !shared.contains(name) {
            self.outputs.write_helper(name, bytes)?;
            shared.insert(name.to_owned());
        }
        Ok(())
    }

    /// Adds lines to the log of the attempt.
    pub(crate) fn log(&self, bytes: &[u8]) {
        // A log that cannot be written does not fail the batch.
        let _ = lock(&self.log).write_all(bytes);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
