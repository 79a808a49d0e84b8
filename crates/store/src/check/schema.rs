//! JSON Schema 2020-12 behind one module, with messages for people, and validation of files that do not fit into memory.

mod resources;
mod stream;
mod wording;

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use milepost_core::expr::place::Place;
use milepost_core::expr::select::Select;
use resources::Resources;
use stream::Streamed;

/// A compiled schema. It can be shared between threads.
pub struct Schema {
    resources: Resources,
    validator: jsonschema::Validator,
    /// What was compiled for streams: one or two a schema, used for every batch.
    streams: Mutex<Vec<(Select, Arc<Streamed>)>>,
}

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Violation {
    /// JSON pointer into the document; empty for the document itself.
    pub pointer: String,
    /// The keyword of the schema that it breaks; `json` for a text that is not JSON.
    pub keyword: String,
    /// What is wrong.
    pub message: String,
    /// The beginning of the value.
    pub value_excerpt: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.pointer, self.message)
        }
    }
}

/// What the validation of a file found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validated {
    /// The first violations, as many as were asked for.
    pub violations: Vec<Violation>,
    /// How many items of the streamed list there were.
    pub items: u64,
    /// How many items are invalid, those without a place in `violations` too.
    pub invalid_items: u64,
}

impl Validated {
    /// Whether the file is valid.
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty() && self.invalid_items == 0
    }
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("{schema}, {place}: {message}")]
    Json {
        /// The schema's file.
        schema: String,
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// It is not a schema.
    #[error("{schema}, at {pointer}: {message}")]
    Invalid {
        /// The schema's file.
        schema: String,
        /// JSON pointer into the schema.
        pointer: String,
        /// What is wrong.
        message: String,
    },
    /// A `$ref` leads nowhere.
    #[error("{schema}: `$ref` to `{reference}`: there is no schema {path}")]
    Missing {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
        /// The file that was looked for.
        path: String,
    },
    /// A `$ref` leads to an address.
    #[error(
        "{schema}: `$ref` to `{reference}`: schemas are not fetched; copy it into the project and refer to the file"
    )]
    Remote {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
    },
    /// A `$ref` leads out of the project by `..` or from the root of the disk.
    #[error(
        "{schema}: `$ref` to `{reference}` leads out of the project: name a file of it, as seen from the schema's folder"
    )]
    Outside {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
    },
    /// A `$ref` leads back to where it stands, without going into the value.
    #[error(
        "{schema}: `$ref` to `{reference}` leads back to where it stands: a validation by it would never end"
    )]
    Circle {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
    },
    /// The list cannot be validated item by item.
    #[error("{schema}: `{select}` cannot be validated as a stream: {reason}")]
    Stream {
        /// The schema's file.
        schema: String,
        /// The path of the list.
        select: String,
        /// Why not.
        reason: String,
    },
}

impl Schema {
    /// Compiles a schema. `name` is its file; what it refers to is asked from `resolve` by the file's path, which is the
    /// reference seen from the folder of the file that refers. The values of `format` are checked.
    ///
    /// # Errors
    /// A text that is no schema, and references that lead nowhere or out of the project.
    pub fn compile(
        name: &str,
        text: &str,
        resolve: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Schema, SchemaError> {
        let resources = Resources::load(name, text, resolve)?;
        let validator = resources.validator(&resources.root_reference(""))?;
        Ok(Schema {
            resources,
            validator,
            streams: Mutex::new(Vec::new()),
        })
    }

    /// The schema's file.
    pub fn name(&self) -> &str {
        self.resources.name()
    }

    /// The files that it refers to, directly or not: they are part of what was validated.
    pub fn files(&self) -> Vec<&str> {
        self.resources.files()
    }

    /// Whether a value is valid: the fast way.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// What is wrong with a value, at most `limit` things. Pointers begin with `base_pointer`, the place of the value in
    /// its document.
    pub fn violations(&self, value: &Value, base_pointer: &str, limit: usize) -> Vec<Violation> {
        violations(&self.validator, value, base_pointer, limit)
    }

    /// Whether the list at a plain path such as `.elements` can be validated item by item.
    ///
    /// # Errors
    /// [`SchemaError::Stream`], with what of the schema needs the whole list.
    pub fn check_stream(&self, select: &Select) -> Result<(), SchemaError> {
        self.streamed(select).map(|_| ())
    }

    /// Validates a JSON file; of the list at `stream` (`.elements`, with or without `[]`) one item is in memory at a time.
    /// At most `limit` violations are kept. A file that is no JSON, or cut, is a violation too.
    ///
    /// # Errors
    /// As [`Schema::check_stream`].
    pub fn validate_stream(
        &self,
        reader: impl Read,
        stream: Option<&Select>,
        limit: usize,
    ) -> Result<Validated, SchemaError> {
        match stream {
            Some(select) => Ok(self.streamed(select)?.validate(reader, limit)),
            None => Ok(match stream::whole(reader) {
                Ok(value) => Validated {
                    violations: self.violations(&value, "", limit),
                    ..Validated::default()
                },
                Err(violation) => Validated {
                    violations: vec![violation],
                    ..Validated::default()
                },
            }),
        }
    }

    fn streamed(&self, select: &Select) -> Result<Arc<Streamed>, SchemaError> {
        let select = select.list();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, streamed)) = streams.iter().find(|(known, _)| *known == select) {
            return Ok(Arc::clone(streamed));
        }
        let streamed = Arc::new(Streamed::compile(&self.resources, &select)?);
        streams.push((select, Arc::clone(&streamed)));
        Ok(streamed)
    }
}

/// What a validator says of a value.
fn violations(
    validator: &jsonschema::Validator,
    value: &Value,
    base: &str,
    limit: usize,
) -> Vec<Violation> {
    if validator.is_valid(value) {
        return Vec::new();
    }
    validator
        .iter_errors(value)
        .take(limit.max(1))
        .map(|error| wording::violation(&error, base))
        .collect()
}

#[cfg(test)]
#[path = "schema/tests.rs"]
mod tests;
