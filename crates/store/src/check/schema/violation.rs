//! Violations of a schema, and the result of a validation.

use milepost_core::base::visible::visible;

/// A place where a document breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Violation {
    /// JSON pointer into the document; empty for the document itself.
    pub pointer: String,
    /// The keyword of the schema; `json` for a text that is not JSON.
    pub keyword: String,
    pub message: String,
    /// The beginning of the value.
    pub value_excerpt: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&visible(&self.message))
        } else {
            let text = format!("{}: {}", self.pointer, self.message);
            f.write_str(&visible(&text))
        }
    }
}

/// The result of the validation of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validated {
    /// The first violations, up to the limit of the call.
    pub violations: Vec<Violation>,
    /// Items of the streamed list.
    pub items: u64,
    /// Invalid items, including those beyond the limit of `violations`.
    pub(crate) invalid_items: u64,
}
