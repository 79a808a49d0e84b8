//! No panic reaches a person as a backtrace: it becomes one plain line and the exit code of a failure.

use super::failure::FAILED;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Does the work, and says so in plain words when it breaks down.
pub(crate) fn guarded(work: impl FnOnce() -> u8) -> u8 {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(|place| format!("{}:{}", place.file(), place.line()));
        let what = panic.payload_as_str().unwrap_or("no message");
        let text = format!("{} ({what})", place.unwrap_or_default());
        tracing::error!("broke down at {text}");
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let place = LAST.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        // Nobody is left to tell when the terminal is gone.
        let _ = writeln!(
            std::io::stderr(),
            "error: Milepost {} broke down at {place}. This is a defect of Milepost: please report this line and the command. \
             The workspace is whole; run again to go on",
            env!("CARGO_PKG_VERSION")
        );
        FAILED
    })
}
