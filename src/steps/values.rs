//! The values that programs and templates of a step see: only the names that they mention, so that nothing else matters.

use super::work::{Work, parse_failure};
use crate::expr::select::Select;
use crate::model::outcome::Outcome;
use crate::model::stage::Program;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The scope (`.`) and the variables of a program.
///
/// # Errors
/// When the content of a name that it mentions cannot be read.
pub fn scope_of(work: &Work<'_>, program: &Program) -> Result<(Value, Vec<Value>), Outcome> {
    let input = work.scope.input_of(&program.jq)?;
    let vars = work.scope.vars_of(&program.jq)?;
    Ok((input, vars))
}

/// The named part of the scope, as plain values.
///
/// # Errors
/// When a content cannot be read.
pub fn named(work: &Work<'_>, names: &BTreeSet<String>) -> Result<Map<String, Value>, Outcome> {
    match work.scope.value_for(names)? {
        Value::Object(scope) => Ok(scope),
        _ => Ok(Map::new()),
    }
}

/// The path inside each file of the name that a path over the scope begins with: a list of files is entered by the path's
/// first `[]`, in a single file the path goes on at once.
///
/// # Errors
/// When the name is a list and the path does not enter it.
pub fn within(work: &Work<'_>, select: &Select) -> Result<Select, Outcome> {
    let name = select.first();
    let rest = select.rest();
    match (work.scope.is_list(name), rest.steps().first()) {
        (false, _) => Ok(rest),
        (true, Some(crate::expr::select::Step::Each)) => Ok(rest.rest()),
        (true, _) => Err(parse_failure(format!(
            "`{select}`: `{name}` is a list of files: write `.{name}[]…`"
        ))),
    }
}

/// Decodes base64 (RFC 4648, with or without padding); none when the text is something else.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text
        .trim_end_matches('=')
        .bytes()
        .filter(|c| !c.is_ascii_whitespace())
    {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::from_base64;

    #[test]
    fn reads_base64() {
        assert_eq!(from_base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(from_base64("aGVsbG8"), Some(b"hello".to_vec()));
        assert_eq!(from_base64("not base64!"), None);
    }
}
