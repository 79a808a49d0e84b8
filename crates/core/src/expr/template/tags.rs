//! The tags of a template, and the words and strings in them.

/// A tag: `{{ body }}` or `{% body %}`. The body is a slice of the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag<'a> {
    pub(super) body: &'a str,
    /// True for `{% %}`.
    pub(super) is_statement: bool,
}

/// Returns the tags of a template in order, without comments and what `raw` holds.
pub(super) fn tags(source: &str) -> Vec<Tag<'_>> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        let (open, inner) = rest[at..].split_at(rest[at..].len().min(1 + width(&rest[at + 1..])));
        match open {
            "{#" => rest = inner.split_once("#}").map_or("", |(_, rest)| rest),
            "{{" | "{%" => {
                let is_statement = open == "{%";
                let body = &inner[..end_of_tag(inner, if is_statement { "%}" } else { "}}" })];
                rest = &inner[body.len()..];
                if is_statement && body.trim_matches(['-', '+']).trim() == "raw" {
                    rest = rest.split_once("endraw").map_or("", |(_, rest)| rest);
                    continue;
                }
                found.push(Tag { body, is_statement });
            }
            _ => rest = inner,
        }
    }
    found
}

fn width(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Where a tag ends: at its closing mark outside of strings, else with the text.
fn end_of_tag(inner: &str, close: &str) -> usize {
    let mut at = 0;
    while let Some(c) = inner[at..].chars().next() {
        if inner[at..].starts_with(close) {
            return at;
        }
        at += match c {
            '"' | '\'' => string(&inner[at..]),
            c => c.len_utf8(),
        };
    }
    inner.len()
}

/// Returns the bytes of a string with its quotes.
pub(super) fn string(text: &str) -> usize {
    let quote = text.chars().next();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if Some(c) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the identifier that a text begins with.
pub(super) fn ident(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let word = &text[..end];
    let begins = |c: char| c.is_alphabetic() || c == '_';
    word.starts_with(begins).then_some(word)
}
