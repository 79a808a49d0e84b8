//! The values that programs and templates of a step see: only the names that they mention.

use super::batch_context::{BatchContext, parse_failure};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns these names of the scope with their values.
///
/// # Errors
/// When the content of a name cannot be read.
pub(crate) fn named(
    ctx: &BatchContext<'_>,
    names: &BTreeSet<String>,
) -> Result<Map<String, Value>, Outcome> {
    match ctx.scope.value_for(names)? {
        Value::Object(scope) => Ok(scope),
        _ => Ok(Map::new()),
    }
}

/// Returns the part of a path that applies inside each file of its first name. In a list of files, the first `[]` of the path
/// enters the list.
///
/// # Errors
/// When the name is a list and the path does not enter it.
pub(crate) fn within(ctx: &BatchContext<'_>, select: &Select) -> Result<Select, Outcome> {
    let name = select.first();
    let rest = select.rest();
    match (ctx.scope.is_list(name), rest.steps().first()) {
        (false, _) => Ok(rest),
        (true, Some(milepost_core::expr::select::PathStep::Each)) => Ok(rest.rest()),
        (true, _) => Err(parse_failure(format!(
            "`{select}`: `{name}` is a list of files: write `.{name}[]…`"
        ))),
    }
}

/// Decodes base64 (RFC 4648, padding optional, lines of any length); `None` if the text is invalid.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let text: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    GeneralPurpose::new(&STANDARD, config).decode(text).ok()
}

/// Encodes as base64 (RFC 4648, with padding).
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::{from_base64, to_base64};

    #[test]
    fn reads_base64() {
        assert_eq!(from_base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(from_base64("aGVsbG8"), Some(b"hello".to_vec()));
        assert_eq!(to_base64(b"hello"), "aGVsbG8=");
        assert_eq!(from_base64("aGVs\nbG8=\n"), Some(b"hello".to_vec()));
        for wrong in ["not base64!", "a", "aGVsbG9=", "aGVsbG8=aGVsbG8="] {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
    }

    /// A number survives reading and writing only with the feature `float_roundtrip` of serde_json, which keeps the last bit.
    #[test]
    fn numbers_of_seventeen_digits_survive_reading_and_writing() {
        for text in [
            "51.24817837550540",
            "0.31386532131223456",
            "31.245270191439438",
            "121.48791951161945",
            "1.1125369292536007e-308",
            "0.00000101324966239929",
        ] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            let exact: f64 = text.parse().unwrap();
            assert_eq!(
                value.as_f64().map(f64::to_bits),
                Some(exact.to_bits()),
                "{text}"
            );
            assert_eq!(
                value.to_string().parse::<f64>().map(f64::to_bits),
                Ok(exact.to_bits())
            );
        }
    }
}
