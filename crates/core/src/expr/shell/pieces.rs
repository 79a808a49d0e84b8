//! The text of a template between its expressions.

use std::ops::Range;

/// A template cut at its expressions.
pub(super) enum Piece {
    Text(String),
    Value(Range<usize>),
}

impl Piece {
    /// Returns the text that the shell sees.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Value(_) => "{",
        }
    }
}

/// Returns the pieces of a template; its tags and comments are left out.
pub(super) fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    let mut trims = false;
    let add = |pieces: &mut Vec<Piece>, text: &str, trims: bool| {
        let text = if trims { text.trim_start() } else { text };
        match pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => pieces.push(Piece::Text(text.to_owned())),
        }
    };
    while let Some(open) = next_tag(source, at) {
        let inner = &source[open + 2..];
        let mut text = &source[at..open];
        if inner.starts_with('-') {
            text = text.trim_end();
        }
        add(&mut pieces, text, trims);
        let mark = source.as_bytes()[open + 1];
        let length = tag_length(inner, mark);
        let end = (open + 2 + length + 2).min(source.len());
        trims = inner[..length].ends_with('-');
        if mark == b'{' {
            pieces.push(Piece::Value(open..end));
        }
        at = end;
    }
    add(&mut pieces, &source[at..], trims);
    pieces
}

fn next_tag(source: &str, from: usize) -> Option<usize> {
    let marks = ["{{", "{%", "{#"].iter();
    let found = marks.filter_map(|mark| source[from..].find(mark));
    found.min().map(|at| from + at)
}

/// Returns the length of the content of a tag: up to its end outside of quoted text.
fn tag_length(inner: &str, mark: u8) -> usize {
    let end = match mark {
        b'{' => "}}",
        b'%' => "%}",
        _ => return inner.find("#}").unwrap_or(inner.len()),
    };
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in inner.char_indices() {
        match quote {
            _ if is_escaped => is_escaped = false,
            Some(_) if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            None if inner[at..].starts_with(end) => return at,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(_) | None => {}
        }
    }
    inner.len()
}
