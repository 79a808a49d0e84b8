//! The disk as planning sees it.

use super::context::Context;
use crate::base::digest::Digest;
use crate::base::glob::Glob;
use crate::base::path::{FilePath, RelPath, Root};
use crate::expr::scope::{self, Format};
use crate::plan::world::World;
use serde_json::Value;

impl World for Context<'_> {
    fn content(&self, file: &FilePath, format: Format) -> Result<Value, String> {
        let source = self.files.source(file).map_err(|error| error.to_string())?;
        scope::parse(&source.name(), &*source, format).map_err(|error| error.to_string())
    }

    fn matches(&self, root: Root, pattern: &str) -> Result<Vec<RelPath>, String> {
        let glob = Glob::parse(pattern).map_err(|error| error.to_string())?;
        self.files
            .list(&glob, root)
            .map_err(|error| error.to_string())
    }

    fn is_folder(&self, file: &FilePath) -> bool {
        self.files.resolve(file).is_ok_and(|path| path.is_dir())
    }

    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String> {
        let import = (file.root == Root::Workspace)
            .then(|| self.imports.get(&file.path))
            .flatten();
        let path = match import {
            Some(import) => import.clone(),
            None => self
                .files
                .resolve(file)
                .map_err(|error| error.to_string())?,
        };
        match self.cache.digest_of(&path) {
            Ok((digest, _)) => Ok(Some(digest)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(format!("`{file}`: {error}")),
        }
    }
}
