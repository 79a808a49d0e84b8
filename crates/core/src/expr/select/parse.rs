//! The text of a plain path to its steps.

use super::steps::{PathStep, SelectError};
use crate::expr::name::is_name;
use crate::expr::place::Place;

/// Reads the steps.
pub(crate) fn parse(text: &str) -> Result<Vec<PathStep>, SelectError> {
    let wrong = |rest: &str, message: &str, hint: &str| {
        let at = text.len() - rest.len();
        let end = at + rest.chars().next().map_or(0, char::len_utf8);
        Err(SelectError::Syntax {
            select: text.to_owned(),
            place: Place::of(text, at..end),
            message: message.to_owned(),
            hint: hint.to_owned(),
        })
    };
    let Some(mut rest) = text.strip_prefix('.') else {
        let hint = format!("write `.{}`", text.trim_start_matches(['$', '.']));
        return wrong(text, "a plain path begins with a dot", &hint);
    };
    let mut steps = Vec::new();
    // After a dot, a name needs no further dot; after a step it needs one.
    let mut after_dot = true;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix("[]") {
            steps.push(PathStep::Each);
            (rest, after_dot) = (inner, false);
        } else if rest.starts_with("[\"") || after_dot && rest.starts_with('"') {
            let quoted = rest.strip_prefix('[').unwrap_or(rest);
            let mut values = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            let Some(Ok(name)) = values.next() else {
                return wrong(quoted, "the quote does not end", "write \"name\"");
            };
            let after = &quoted[values.byte_offset()..];
            rest = match (rest.starts_with('['), after.strip_prefix(']')) {
                (true, None) => return wrong(after, "a `]` is missing", "write [\"name\"]"),
                (true, Some(after)) => after,
                (false, _) => after,
            };
            steps.push(PathStep::Field(name));
            after_dot = false;
        } else if let Some(inner) = rest.strip_prefix('.').filter(|_| !after_dot) {
            if inner.is_empty() {
                return wrong(
                    inner,
                    "a name is missing after the dot",
                    "leave the dot out",
                );
            }
            (rest, after_dot) = (inner, true);
        } else {
            let end = rest
                .find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'))
                .unwrap_or(rest.len());
            if !after_dot || !is_name(&rest[..end]) {
                let hint = match rest.chars().next() {
                    Some('[') => {
                        "a plain path has `[]`, all items; a single one or a part needs a jq program"
                    }
                    Some('?') => "null selects no values anyway; leave the `?` out",
                    Some('|' | ' ' | '(') => {
                        "a plain path has only names and `[]`; for more use a key that takes jq"
                    }
                    _ => "write names that are not plain words in quotes: .\"odd name\"",
                };
                return wrong(rest, "this is not a step of a plain path", hint);
            }
            steps.push(PathStep::Field(rest[..end].to_owned()));
            (rest, after_dot) = (&rest[end..], false);
        }
    }
    Ok(steps)
}
