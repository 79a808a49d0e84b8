//! Colours and weights of text. Every text can be read without them.

use anstyle::{AnsiColor, Style as Effect};
use std::fmt::Display;

/// Colours for a terminal, or plain text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) on: bool,
}

impl Style {
    pub(crate) const PLAIN: Style = Style { on: false };

    fn with(self, effect: Effect, text: impl Display) -> String {
        if self.on {
            format!("{effect}{text}{effect:#}")
        } else {
            text.to_string()
        }
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn warn(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    /// A command.
    pub(crate) fn code(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    /// A name or a heading.
    pub(crate) fn strong(self, text: impl Display) -> String {
        self.with(Effect::new().bold(), text)
    }

    /// A side remark.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with(Effect::new().dimmed(), text)
    }
}
