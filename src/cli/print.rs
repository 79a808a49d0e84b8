//! The one printer: results to standard output, everything else to standard error.

use crate::view::paint::Paint;
use indicatif::{MultiProgress, ProgressDrawTarget};
use milepost_core::base::redact::redact;
use serde_json::Value;
use std::io::Write;

/// Standard error, shared with the bars that are drawn there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    bars: Option<MultiProgress>,
}

impl Screen {
    /// Standard error on which bars are drawn.
    pub(crate) fn with_bars() -> Self {
        Self {
            bars: Some(MultiProgress::with_draw_target(ProgressDrawTarget::stderr())),
        }
    }

    /// The bars, where there are some.
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

/// Prints, in the way that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    /// Colours of standard output.
    pub(crate) out: Paint,
    /// Colours of standard error.
    pub(crate) err: Paint,
    /// Results are JSON.
    pub(crate) json: bool,
    /// Only problems are said.
    pub(crate) quiet: bool,
    /// Standard error.
    pub(crate) screen: Screen,
}

impl Printer {
    /// A result, which may have several lines.
    #[expect(clippy::unused_self, reason = "whoever prints holds the printer")]
    pub(crate) fn result(&self, text: &str) {
        put(&mut std::io::stdout().lock(), text.trim_end_matches('\n'));
    }

    /// A result as JSON.
    pub(crate) fn result_json(&self, value: &Value) {
        self.result(&format!("{value:#}"));
    }

    /// Something to be read beside the result. What looks like a key is not shown.
    pub(crate) fn say(&self, text: &str) {
        self.screen.line(&redact(text));
    }

    /// A problem.
    pub(crate) fn error(&self, text: &str) {
        self.say(&format!("{} {text}", self.err.bad("error:")));
    }

    /// Something to know of.
    pub(crate) fn warning(&self, text: &str) {
        self.say(&format!("{} {text}", self.err.warn("warning:")));
    }
}

fn put(to: &mut dyn Write, text: &str) {
    // A reader that went away, such as `head`, has read enough.
    let _ = writeln!(to, "{text}").and_then(|()| to.flush());
}
