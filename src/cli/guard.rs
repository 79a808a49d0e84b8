//! Turns a panic into a message and an exit code: no person sees a backtrace.

use milepost_core::base::visible::visible;
use milepost_engine::ops::exit_code::FAILED;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Does the work, and reports a panic in plain words.
pub(crate) fn guarded(work: impl FnOnce() -> u8) -> u8 {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(|place| format!("{}:{}", place.file(), place.line()));
        let what = panic.payload_as_str().unwrap_or("no message");
        let text = format!("{} ({})", place.unwrap_or_default(), visible(what));
        tracing::error!("panicked at {text}");
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let place = LAST.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        // Nothing can be printed when the terminal is gone.
        let _ = writeln!(
            std::io::stderr(),
            "error: Milepost {} stopped unexpectedly at {place}\n\
             note: this is a bug in Milepost, please report it with the command and the line above\n\
             help: the workspace is consistent; run again to continue",
            env!("CARGO_PKG_VERSION")
        );
        FAILED
    })
}
