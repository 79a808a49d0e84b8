//! The schemas of a project, each compiled once.

use super::schema::{Schema, SchemaError};
use milepost_core::model::pipeline::Asset;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The schemas of a project, each compiled at its first use. Threads can share them.
#[derive(Default)]
pub struct Schemas {
    compiled: Mutex<BTreeMap<String, Arc<Schema>>>,
}

impl Schemas {
    /// Returns the compiled schema of an asset, with the files that it refers to.
    ///
    /// # Errors
    /// Fails if the asset is not a schema.
    pub fn get(&self, asset: &Asset) -> Result<Arc<Schema>, SchemaError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = compiled.get(asset.path.as_str()) {
            return Ok(Arc::clone(schema));
        }
        let text_of = |path: &str| {
            let found = asset.refers.iter().find(|file| file.path.as_str() == path);
            found.map(|file| file.text.to_string())
        };
        let schema = Arc::new(Schema::compile(asset.path.as_str(), &asset.text, &text_of)?);
        compiled.insert(asset.path.to_string(), Arc::clone(&schema));
        Ok(schema)
    }
}
