//! Turns a panic into a message and an exit code: no person sees a backtrace.

use milepost_core::base::in_order::no_thread;
use milepost_core::base::visible::visible;
use milepost_engine::ops::exit_code::FAILED;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

static LAST: Mutex<Option<PanicReport>> = Mutex::new(None);

/// The report of the last panic.
enum PanicReport {
    /// The machine lacks something.
    Machine(String),
    /// A defect, with its place.
    Defect(String),
}

/// Does the work, and reports a panic in plain words.
pub(crate) fn guarded(work: impl FnOnce() -> u8) -> u8 {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(|place| format!("{}:{}", place.file(), place.line()));
        let what = panic.payload_as_str().unwrap_or("no message");
        let text = format!("{} ({})", place.unwrap_or_default(), visible(what));
        tracing::error!("panicked at {text}");
        let text = match no_thread::of_text(what) {
            Some(message) => PanicReport::Machine(message),
            None => PanicReport::Defect(text),
        };
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let report = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let text = match report {
            Some(PanicReport::Machine(message)) => format!("error: {message}"),
            report => {
                let place = match report {
                    Some(PanicReport::Defect(place)) => place,
                    _ => String::new(),
                };
                format!(
                    "error: Milepost {} stopped unexpectedly at {place}\n\
                     note: this is a bug in Milepost, please report it with the command and the line above\n\
                     help: the workspace is consistent; run again to continue",
                    env!("CARGO_PKG_VERSION")
                )
            }
        };
        // Nothing can be printed when the terminal is gone.
        let _ = writeln!(std::io::stderr(), "{text}");
        FAILED
    })
}
