//! The only printer: results go to standard output, everything else to standard error.
//!
//! No control character reaches a terminal: those that the views left are written as escapes, except line breaks, tabs and styles.

use crate::view::text::style::Style;
use indicatif::{MultiProgress, ProgressDrawTarget};
use milepost_core::base::redact::redact;
use milepost_core::base::visible::{visible_lines, visible_message};
use milepost_engine::ops::exit_code::FAILED;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

/// Standard error, with the bars drawn on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    bars: Option<MultiProgress>,
}

/// Why standard output could not be written; empty if it could.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputFault(Arc<OnceLock<String>>);

impl Screen {
    /// Returns standard error with bars.
    pub(crate) fn with_bars() -> Self {
        Self {
            bars: Some(MultiProgress::with_draw_target(ProgressDrawTarget::stderr())),
        }
    }

    /// Returns the bars, if there are any.
    pub(crate) fn bars(&self) -> Option<&MultiProgress> {
        self.bars.as_ref()
    }

    /// Prints a line above the bars.
    fn line(&self, text: &str) {
        // Without standard error, nothing can say so.
        let print = || drop(put(&mut io::stderr().lock(), text));
        match &self.bars {
            Some(bars) => bars.suspend(print),
            None => print(),
        }
    }
}

/// Prints as the options say.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    /// The style of standard output.
    pub(crate) out: Style,
    /// The style of standard error.
    pub(crate) err: Style,
    /// Prints results as JSON.
    pub(crate) json: bool,
    /// Prints only warnings and errors.
    pub(crate) quiet: bool,
    pub(crate) screen: Screen,
    pub(crate) fault: OutputFault,
}

impl Printer {
    /// Prints a result.
    pub(crate) fn result(&self, text: &str) {
        self.put(&self.out.printable(text.trim_end_matches('\n')));
    }

    /// Prints a result as JSON on several lines.
    pub(crate) fn result_json(&self, value: &Value) {
        self.put(&visible_lines(&format!("{value:#}")));
    }

    /// Prints a result as JSON on one line.
    pub(crate) fn result_line(&self, value: &Value) {
        self.put(&visible_lines(&value.to_string()));
    }

    fn put(&self, text: &str) {
        match put(&mut io::stdout().lock(), text) {
            // The reader may have closed the pipe, as `head` does.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = self.fault.0.set(error.to_string());
            }
            _ => {}
        }
    }

    /// Returns true if nothing reads standard output any more.
    pub(crate) fn is_closed() -> bool {
        let out = io::stdout();
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        let polled = poll(&mut watched, Some(&Timespec::default()));
        polled.is_ok() && watched[0].revents().contains(PollFlags::ERR)
    }

    /// Returns the exit code of the program; if results could not be written, says so, and the code is not 0.
    pub(crate) fn ended(&self, code: u8) -> u8 {
        let Some(why) = self.fault.0.get() else {
            return code;
        };
        self.error(&format!("cannot write to standard output: {why}"));
        if code == 0 { FAILED } else { code }
    }

    /// Prints a message, without anything that looks like a key.
    pub(crate) fn say(&self, text: &str) {
        self.screen.line(&self.err.printable(&redact(text)));
    }

    /// Prints a line that may hold a key which its reader needs, such as the token of a server.
    pub(crate) fn say_with_key(&self, text: &str) {
        self.screen.line(&self.err.printable(text));
    }

    /// Prints an error.
    pub(crate) fn error(&self, text: &str) {
        self.say(&format!(
            "{} {}",
            self.err.bad("error:"),
            visible_message(text)
        ));
    }

    /// Prints a warning.
    pub(crate) fn warning(&self, text: &str) {
        self.say(&format!(
            "{} {}",
            self.err.warn("warning:"),
            visible_message(text)
        ));
    }
}

fn put(to: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(to, "{text}").and_then(|()| to.flush())
}
