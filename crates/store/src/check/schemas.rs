//! The schemas of a project, each compiled once.

use super::schema::{Schema, SchemaError};
use milepost_core::decl::{Problems, schema_problem};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::stage::Stage;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The schemas of a project, each compiled at its first use. Threads can share them.
#[derive(Default)]
pub struct Schemas {
    compiled: Mutex<BTreeMap<String, Arc<Schema>>>,
}

impl Schemas {
    /// Compiles the schemas of stages. Returns the first mistake of each that is invalid.
    ///
    /// # Errors
    /// The mistakes, each at its place.
    pub fn check(&self, stages: &[Stage]) -> Result<(), Problems> {
        let mut problems = Vec::new();
        let mut wrong = |asset: &Asset, error: SchemaError| {
            let problem = match &error {
                SchemaError::Invalid {
                    schema,
                    pointer,
                    message,
                } => schema_problem(asset, schema, pointer, message.clone()),
                _ => schema_problem(asset, asset.path.as_str(), "", error.to_string()),
            };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        };
        for stage in stages {
            for asset in stage.schemas() {
                if let Err(error) = self.get(asset) {
                    wrong(asset, error);
                }
            }
            for output in &stage.outputs {
                if let (Some(asset), Some(stream)) = (&output.schema, &output.stream)
                    && let Ok(schema) = self.get(asset)
                    && let Err(error) = schema.check_stream(stream)
                {
                    wrong(asset, error);
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Problems(problems))
        }
    }

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
