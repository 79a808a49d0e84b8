//! Colours and weights of text. Every text can be read without them.

use anstyle::{AnsiColor, Style as Effect};
use milepost_core::base::visible::visible_lines;
use std::borrow::Cow;
use std::fmt::Display;

/// The start of a style.
const ESCAPE: &str = "\u{1b}[";

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

    /// Returns a text as it may be printed: control characters become escapes, except line breaks, tabs and, with colours, styles.
    pub(crate) fn printable(self, text: &str) -> Cow<'_, str> {
        if !self.on || !text.contains(ESCAPE) {
            return visible_lines(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(ESCAPE) {
            shown.push_str(&visible_lines(before));
            match after.split_once('m').filter(|(style, _)| is_style(style)) {
                Some((style, after)) => {
                    shown.push_str(&format!("{ESCAPE}{style}m"));
                    rest = after;
                }
                None => {
                    shown.push_str(&visible_lines(ESCAPE));
                    rest = after;
                }
            }
        }
        shown.push_str(&visible_lines(rest));
        Cow::Owned(shown)
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

/// Returns true for the codes that [`Style`] writes. Others hide text, such as black or blinking.
fn is_style(code: &str) -> bool {
    matches!(code, "0" | "1" | "2" | "31" | "32" | "33" | "36")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_styles_are_printed_raw() {
        let style = Style { on: true };
        let all = [
            Style::good,
            Style::bad,
            Style::warn,
            Style::code,
            Style::strong,
            Style::dim,
        ];
        let styled = all.map(|styled| styled(style, "a\n\tb")).concat();
        assert_eq!(style.printable(&styled), styled);
        for code in [
            "", "5", "7", "8", "30", "40", "31;40", "1;31", "38;5;0", "90", "97",
        ] {
            let text = format!("\u{1b}[{code}mhidden");
            assert_eq!(style.printable(&text), format!("\\u001b[{code}mhidden"));
        }
        let text =
            "\u{1b}[8mhidden\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{1b}[1mbold\u{1b}[";
        assert_eq!(
            style.printable(text),
            "\\u001b[8mhidden\\u001b[2J\\u001b]0;title\\u0007\\u009b31m\\u202e\u{1b}[1mbold\\u001b["
        );
        assert!(!Style::PLAIN.printable(&styled).contains('\u{1b}'));
    }
}
