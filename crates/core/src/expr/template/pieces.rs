//! Templates of words and names only, such as `intermediate/{{ item.stem }}.json`: rendered without the engine, as it would.

use crate::expr::name::is_name;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Words that the engine does not read as names.
const WORDS: [&str; 16] = [
    "true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else",
    "self", "super", "loop",
];

/// A template cut at its names.
pub(super) struct Pieces(Vec<Piece>);

enum Piece {
    Text(String),
    Name(Vec<String>),
}

impl Pieces {
    /// Returns the pieces of a template; none when there is more to it.
    pub(super) fn of(source: &str) -> Option<Self> {
        if source.contains("{%") || source.contains("{#") {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = source;
        while let Some((text, after)) = rest.split_once("{{") {
            let (expression, after) = after.split_once("}}")?;
            let name: Vec<String> = expression.trim().split('.').map(str::to_owned).collect();
            if !name.iter().all(|part| is_name(part)) || WORDS.contains(&name.first()?.as_str()) {
                return None;
            }
            pieces.push(Piece::Text(text.to_owned()));
            pieces.push(Piece::Name(name));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Some(Self(pieces))
    }

    /// Returns the text that the only piece names; `None` if there are several pieces, or it is not a string.
    pub(super) fn only<'a>(&self, scope: &'a Value) -> Option<&'a str> {
        match self.0.as_slice() {
            [Piece::Text(before), Piece::Name(name), Piece::Text(after)]
                if before.is_empty() && after.is_empty() =>
            {
                look(scope, name)?.as_str()
            }
            _ => None,
        }
    }

    /// Renders, each value as `write` writes its text. None when a value is not defined, or neither text nor a whole number: the
    /// engine says what to make of it.
    pub(super) fn render(
        &self,
        scope: &Value,
        write: impl Fn(&str) -> Cow<'_, str>,
    ) -> Option<String> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(name) => {
                    match look(scope, name)? {
                        Value::String(text) => out.push_str(&write(text)),
                        Value::Number(number) if number.is_i64() || number.is_u64() => {
                            // Writing into a String does not fail.
                            let _ = write!(out, "{number}");
                        }
                        _ => return None,
                    }
                }
            }
        }
        Some(out)
    }
}

fn look<'a>(scope: &'a Value, name: &[String]) -> Option<&'a Value> {
    name.iter()
        .try_fold(scope, |value, part| value.as_object()?.get(part))
}
