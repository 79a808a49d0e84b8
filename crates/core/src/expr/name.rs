//! Names of fields and variables.

/// Returns true if a text is a name that needs no quotes in jq and in templates: ASCII letters, digits and `_`, not a digit first.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
