//! Parts of SVG drawings: text that is safe in XML, text that fits, and a drawing as a file of its own.
//!
//! Drawings have no `style` attribute and no style of their own, so that a page can forbid inline styles. [`STYLE`] styles them.

use milepost_core::base::visible::visible;
use std::fmt::Write as _;

/// The style of all drawings, in light and dark. It needs no variables, because readers of SVG files do not know them.
const STYLE: &str = include_str!("assets/drawing.css");

/// Returns a text for the content or an attribute of XML or HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML forbids them.
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Returns a text that fits into this many columns, with `…` for what is left out near its start, because paths differ at their ends.
pub(super) fn shortened(text: &str, columns: usize) -> String {
    let text = visible(text);
    let width = |c: char| 1 + usize::from(u32::from(c) >= 0x1100);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.into_owned();
    }
    let part = |chars: &mut dyn Iterator<Item = char>, room: usize| {
        let mut left = room;
        let fits = chars.take_while(|c| {
            let is_fitting = width(*c) <= left;
            left -= width(*c).min(left);
            is_fitting
        });
        fits.collect::<Vec<char>>()
    };
    let room = columns.saturating_sub(1);
    let start = part(&mut text.chars(), room / 4);
    let end = part(&mut text.chars().rev(), room - room / 4);
    let whole = start.iter().chain(&['…']).chain(end.iter().rev());
    whole.collect()
}

/// A drawing: its size and its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawing {
    /// The id of the drawing in its page, of ASCII letters.
    pub id: String,
    pub width: i32,
    pub height: i32,
    /// The name, for people who hear the page.
    pub title: String,
    /// The description, for readers that cannot see the drawing.
    pub description: String,
    /// True if parts of it can be selected.
    pub is_linked: bool,
    /// The elements, as SVG.
    pub content: String,
}

impl Drawing {
    /// Returns the drawing as an element of a page, which must contain [`STYLE`].
    pub(super) fn element(&self) -> String {
        self.written("")
    }

    /// Returns the drawing as a file.
    pub(super) fn file(&self) -> String {
        let style = format!(
            "<style>{STYLE}</style>\n<rect class=\"d-paper\" width=\"100%\" height=\"100%\"/>\n"
        );
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
            self.written(&style)
        )
    }

    fn written(&self, before: &str) -> String {
        let Self {
            id, width, height, ..
        } = self;
        // An image has no parts for a screen reader.
        let role = if self.is_linked { "group" } else { "img" };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"{role}\" aria-labelledby=\"{id}-title {id}-desc\">\n"
        );
        let _ = writeln!(
            svg,
            "<title id=\"{id}-title\">{}</title>",
            escaped(&self.title)
        );
        let _ = writeln!(
            svg,
            "<desc id=\"{id}-desc\">{}</desc>",
            escaped(&self.description)
        );
        svg.push_str(before);
        svg.push_str(&self.content);
        svg.push_str("</svg>\n");
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(
            escaped("<script>'\"&\u{1b}\u{ffff}"),
            "&lt;script&gt;&#39;&quot;&amp;\\u001b\u{fffd}"
        );
    }

    #[test]
    fn long_text_keeps_its_end() {
        assert_eq!(shortened("inputs/a.json", 13), "inputs/a.json");
        assert_eq!(shortened("inputs/a.json", 9), "in…a.json");
        assert_eq!(shortened("图纸图纸图纸", 9), "图…纸图纸");
        assert_eq!(shortened("abc", 1), "…");
    }
}
