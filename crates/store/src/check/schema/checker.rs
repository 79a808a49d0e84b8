//! A schema or a part of one, compiled: whether a value is valid, and what is wrong with it.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::limited::{self, LimitedJson};
use super::resources::{Resources, SchemaError};
use super::violation::Violation;

/// The validators of a part of a schema.
pub(crate) struct Checker {
    validator: jsonschema::Validator,
    /// The one that finds violations, compiled for the first invalid value.
    limited: OnceLock<Result<jsonschema::Validator<LimitedJson>, SchemaError>>,
    resources: Arc<Resources>,
    /// The document, and the pointer of the part.
    part: (String, String),
}

impl Checker {
    /// Compiles a part of a schema.
    ///
    /// # Errors
    /// If it is not a schema.
    pub(crate) fn compile(
        resources: &Arc<Resources>,
        part: (String, String),
    ) -> Result<Self, SchemaError> {
        Ok(Self {
            validator: resources.validator(&part)?,
            limited: OnceLock::new(),
            resources: Arc::clone(resources),
            part,
        })
    }

    /// Returns true if a value is valid.
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Returns at most `limit` violations of a value, with pointers that begin with `base`.
    pub(crate) fn violations(&self, value: &Value, base: &str, limit: usize) -> Vec<Violation> {
        if self.is_valid(value) {
            return Vec::new();
        }
        let compiled = || self.resources.validator(&self.part);
        match self.limited.get_or_init(compiled) {
            Ok(validator) => limited::violations(validator, value, base, limit),
            // It was compiled before, so it compiles.
            Err(error) => vec![Violation {
                pointer: base.to_owned(),
                keyword: "$schema".to_owned(),
                message: error.to_string(),
                value_excerpt: String::new(),
            }],
        }
    }
}
