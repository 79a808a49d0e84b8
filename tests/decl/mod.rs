//! Declarations: right ones load, wrong ones are told with their places.

mod cases;
mod docs;
mod examples;
mod facts;
mod loaded;
mod odd;
mod schemas;
mod step_kinds;

use milepost_core::base::path::RelPath;
use milepost_core::decl::{Problems, ProjectFiles, Warning, load};
use milepost_core::model::pipeline::Pipeline;
use std::collections::{BTreeMap, BTreeSet};

/// A project in memory.
#[derive(Debug, Clone, Default)]
pub struct Files(pub BTreeMap<String, Vec<u8>>);

impl Files {
    /// A project of these files.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            files
                .into_iter()
                .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
                .collect(),
        )
    }

    /// With another file.
    #[must_use]
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.0.insert(name.to_owned(), text.as_bytes().to_vec());
        self
    }

    /// Reads the declarations.
    pub fn load(&self) -> Result<(Pipeline, Vec<Warning>), Problems> {
        load(self)
    }

    /// What people read about what is wrong.
    pub fn wrong(&self) -> String {
        match self.load() {
            Ok(_) => "nothing is wrong\n".to_owned(),
            Err(problems) => problems.render(false),
        }
    }
}

impl ProjectFiles for Files {
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>> {
        self.0.get(path.as_str()).map(|bytes| Ok(bytes.clone()))
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let inside = |path: &String| match folder {
            "" => Some(path.clone()),
            folder => path
                .strip_prefix(folder)?
                .strip_prefix('/')
                .map(str::to_owned),
        };
        let first = |path: String| path.split('/').next().map(str::to_owned);
        let names: BTreeSet<String> = self.0.keys().filter_map(inside).filter_map(first).collect();
        names.into_iter().collect()
    }
}
