//! A string of a declaration with its place in the file.

use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::tree::inside;
use std::ops::Range;

/// A string of a declaration with its place, including its quotes.
#[derive(Debug, Clone)]
pub(crate) struct LocatedText<'a> {
    pub(crate) file: &'a SourceFile,
    /// The key, for messages.
    pub(crate) key: &'a str,
    pub(crate) text: &'a str,
    /// The place in the file.
    pub(crate) span: Range<usize>,
}

impl LocatedText<'_> {
    /// A mistake of the whole string.
    pub(crate) fn problem(&self, message: impl Into<String>) -> Problem {
        self.file.problem(self.span.clone(), message)
    }

    /// A mistake of a part of the string. An empty part behind its beginning is the place where something is missing.
    pub(crate) fn problem_at(&self, part: &Range<usize>, message: impl Into<String>) -> Problem {
        let place = |offset| inside(&self.file.text, &self.span, offset);
        let start = place(part.start);
        let span = match (place(part.end), part.start) {
            (end, _) if end > start => start..end,
            (_, 0) => self.span.clone(),
            _ if self.file.text[start..].starts_with(['\r', '\n']) => start..start,
            _ => start..start + 1,
        };
        self.file.problem(span, message)
    }

    /// Returns true if it is in double quotes and has backslashes, some of which TOML removes.
    pub(crate) fn is_escaped(&self) -> bool {
        let raw = self.file.text.get(self.span.clone()).unwrap_or_default();
        raw.starts_with('"') && (raw.contains("\\\"") || raw.contains("\\\\"))
    }
}
