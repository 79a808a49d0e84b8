//! The only printer: results go to standard output, everything else to standard error.

use crate::view::text::style::Style;
use indicatif::{MultiProgress, ProgressDrawTarget};
use milepost_core::base::redact::redact;
use serde_json::Value;
use std::io::Write;

/// Standard error, with the bars drawn on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    bars: Option<MultiProgress>,
}

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
    pub(crate) fn line(&self, text: &str) {
        let print = || put(&mut std::io::stderr().lock(), text);
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
}

impl Printer {
    /// Prints a result.
    #[expect(clippy::unused_self, reason = "only the owner of a printer prints")]
    pub(crate) fn result(&self, text: &str) {
        put(&mut std::io::stdout().lock(), text.trim_end_matches('\n'));
    }

    /// Prints a result as JSON.
    pub(crate) fn result_json(&self, value: &Value) {
        self.result(&format!("{value:#}"));
    }

    /// Prints a message, without anything that looks like a key.
    pub(crate) fn say(&self, text: &str) {
        self.screen.line(&redact(text));
    }

    /// Prints a line that may hold a key which its reader needs, such as the token of a server.
    pub(crate) fn say_with_key(&self, text: &str) {
        self.screen.line(text);
    }

    /// Prints an error.
    pub(crate) fn error(&self, text: &str) {
        self.say(&format!("{} {text}", self.err.bad("error:")));
    }

    /// Prints a warning.
    pub(crate) fn warning(&self, text: &str) {
        self.say(&format!("{} {text}", self.err.warn("warning:")));
    }
}

fn put(to: &mut dyn Write, text: &str) {
    // The reader may have closed the pipe, as `head` does.
    let _ = writeln!(to, "{text}").and_then(|()| to.flush());
}
