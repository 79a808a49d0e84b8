//! A place in a text: line, column and bytes.

use std::fmt;
use std::ops::Range;

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The character in the line, from 1.
    pub(crate) column: usize,
    /// The bytes in the text.
    pub(crate) range: Range<usize>,
}

impl Place {
    /// Returns the place of `range` in `text`, cut to the text.
    pub fn of(text: &str, range: Range<usize>) -> Self {
        let mut start = range.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            range: start..range.end.clamp(start, text.len()),
        }
    }

    /// Returns the place of `part`, a slice of `text` itself. `None` if it is not one.
    pub(crate) fn of_slice(text: &str, part: &str) -> Option<Self> {
        let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        (start + part.len() <= text.len()).then(|| Self::of(text, start..start + part.len()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Cuts a text that is shown in a message to about `limit` characters, keeping its beginning and its end.
pub fn excerpt(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let tail = limit / 3;
    let head: String = text.chars().take(limit - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{head} … {end}")
}

/// Returns at most 20 names in quotes, for a message: "`a`, `b`".
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let mut shown: Vec<String> = all
        .iter()
        .take(20)
        .map(|name| format!("`{name}`"))
        .collect();
    if all.len() > shown.len() {
        shown.push(format!("and {} more", all.len() - shown.len()));
    }
    shown.join(", ")
}

/// Returns the name that is most similar to `wrong`, if one is similar enough.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.len().min(wrong.len()) / 3))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_characters() {
        let text = "a\näö x";
        assert_eq!(
            Place::of(text, 7..8),
            Place {
                line: 2,
                column: 4,
                range: 7..8
            }
        );
        assert_eq!(
            Place::of_slice(text, &text[7..]),
            Some(Place::of(text, 7..8))
        );
    }

    #[test]
    fn cuts_long_texts_in_the_middle() {
        assert_eq!(excerpt("0123456789", 6), "0123 … 89");
        assert_eq!(excerpt("0123", 6), "0123");
    }

    #[test]
    fn finds_the_nearest_name() {
        assert_eq!(nearest("modle", ["params", "model"]), Some("model"));
        assert_eq!(nearest("zzz", ["params", "model"]), None);
    }
}
