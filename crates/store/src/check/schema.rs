//! JSON Schema 2020-12, with messages for people and validation of files that do not fit into memory.

mod checker;
mod limited;
mod resources;
mod stream;
mod violation;
mod wording;

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use checker::Checker;
use milepost_core::expr::select::Select;
use resources::Resources;
use stream::Streamed;
pub(super) use stream::unreadable;

pub use resources::SchemaError;
pub use violation::{Validated, Violation};

/// A compiled schema. It can be shared between threads.
pub struct Schema {
    resources: Arc<Resources>,
    checker: Checker,
    /// Validators compiled for streams: one or two for each schema, reused for every batch.
    streams: Mutex<Vec<(Select, Arc<Streamed>)>>,
}

impl Schema {
    /// Compiles a schema. `name` is its file. `resolve` returns the files that it refers to, by their paths: each reference is relative
    /// to the folder of the file that contains it. The values of `format` are checked.
    ///
    /// # Errors
    /// Fails if the text is not a schema, or a reference leads nowhere or out of the project.
    pub fn compile(
        name: &str,
        text: &str,
        resolve: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Schema, SchemaError> {
        let resources = Arc::new(Resources::load(name, text, resolve)?);
        resources.check_referred()?;
        let root = resources.root_reference("");
        Ok(Schema {
            checker: Checker::compile(&resources, root)?,
            resources,
            streams: Mutex::new(Vec::new()),
        })
    }

    /// Returns true if a value is valid. Faster than [`Schema::violations`].
    pub fn is_valid(&self, value: &Value) -> bool {
        self.checker.is_valid(value)
    }

    /// Returns at most `limit` violations of a value. Pointers start with `base_pointer`, the place of the value in its document.
    pub fn violations(&self, value: &Value, base_pointer: &str, limit: usize) -> Vec<Violation> {
        self.checker.violations(value, base_pointer, limit)
    }

    /// Validates a JSON file and returns at most `limit` violations. Of the list at `stream` (`.elements`, with or without `[]`) one
    /// item is in memory at a time. A file that is truncated or not JSON is a violation too.
    ///
    /// # Errors
    /// Fails as [`Schema::check_stream`] does.
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

    /// Like [`Schema::validate_stream`], on several threads. Returns `None` if the text cannot be read; [`Schema::validate_stream`]
    /// then reports the place.
    ///
    /// # Errors
    /// The errors of [`Schema::check_stream`].
    pub fn validate_items(
        &self,
        reader: impl Read,
        select: &Select,
        limit: usize,
        threads: usize,
    ) -> Result<Option<Validated>, SchemaError> {
        let streamed = self.streamed(select)?;
        Ok(streamed.validate_on(threads, reader, limit))
    }

    /// Checks that the list at `stream` can be validated item by item.
    ///
    /// # Errors
    /// If a keyword needs the whole list.
    pub fn check_stream(&self, stream: &Select) -> Result<(), SchemaError> {
        self.streamed(stream).map(|_| ())
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

#[cfg(test)]
#[path = "schema/tests.rs"]
mod tests;
