//! How many calls are in progress.

use super::limits::{CALLS, WAITS};
use super::tool_error::ToolError;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room for calls in progress.
pub(super) struct Slots {
    calls: Arc<Semaphore>,
    waits: Arc<Semaphore>,
}

/// A call in progress counts until this is dropped.
pub(super) type Slot = OwnedSemaphorePermit;

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            calls: Arc::new(Semaphore::new(CALLS)),
            waits: Arc::new(Semaphore::new(WAITS)),
        }
    }

    /// Counts a call; one that waits for a file holds no thread, and is counted apart.
    ///
    /// # Errors
    /// If as many calls are in progress as may be.
    pub(super) fn begin(&self, waits: bool) -> Result<Slot, ToolError> {
        let (slots, most) = if waits {
            (&self.waits, WAITS)
        } else {
            (&self.calls, CALLS)
        };
        Arc::clone(slots).try_acquire_owned().map_err(|_| {
            ToolError::new(
                "too_many_calls",
                format!(
                    "the client has {most} calls of this kind in progress, which is the maximum"
                ),
                "wait until a call has ended, then call again",
            )
        })
    }
}
