//! The disk as a plan observes it.

use crate::run::context::Context;
use crate::steps::worker::JqWorkers;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, Root};
use milepost_core::expr::jq::Evaluator;
use milepost_core::expr::scope::{self, Reading};
use milepost_core::model::stage::Stage;
use milepost_core::plan::world::{Matches, World};
use milepost_store::store::folder::OpenedEntry;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

impl World for Context<'_> {
    fn content(&self, file: &FilePath, reading: &Reading) -> Result<Value, String> {
        if self.asked.is_on() && self.digest(file).is_err() {
            self.asked.discard();
        }
        let source = self.files.source(file).map_err(|error| error.to_string())?;
        scope::parse(&source.name(), &*source, reading).map_err(|error| error.to_string())
    }

    fn matches(&self, root: Root, pattern: &str) -> Result<Matches, String> {
        let glob = Glob::parse(pattern).map_err(|error| error.to_string())?;
        let before = self.cache.now();
        let folder = self.files.stamp_of_folder(&glob, root);
        let found = self.files.list(&glob, root);
        match &found {
            Ok(found) if found.refused.is_empty() => {
                let settled = folder.filter(|stamp| stamp.was_settled(before));
                self.asked.list(root, pattern, &found.files, settled);
            }
            _ => self.asked.discard(),
        }
        found.map_err(|error| error.to_string())
    }

    fn is_folder(&self, file: &FilePath) -> Result<bool, String> {
        let path = self.files.resolve(file).ok();
        let folder = path.filter(|path| path.is_dir());
        self.asked.folder(file, folder.is_some());
        let real = |path: &Path| path.canonicalize().ok();
        match &folder {
            Some(path)
                if real(self.layout.root())
                    .is_some_and(|at| real(path).is_some_and(|of| at.starts_with(of))) =>
            {
                self.asked.discard();
                let path = &file.path;
                Err(format!(
                    "`project:{path}` contains the workspace, so the outputs would be inputs: name a folder without it"
                ))
            }
            folder => Ok(folder.is_some()),
        }
    }

    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String> {
        let import = (file.root == Root::Workspace)
            .then(|| self.imports.get(&file.path))
            .flatten();
        if import.is_none() {
            match self.files.open_plain(file) {
                OpenedEntry::Absent => {
                    self.asked.file(file, None);
                    return Ok(None);
                }
                OpenedEntry::There(open) => {
                    let seen = self.cache.look_at(open).map_err(|error| {
                        self.asked.discard();
                        format!("`{file}`: {error}")
                    })?;
                    if let Some(seen) = seen {
                        self.asked.file(file, Some(seen));
                        return Ok(Some(seen.digest));
                    }
                }
                OpenedEntry::Unclear => {}
            }
        }
        let path = match import {
            Some(import) => {
                self.asked.discard();
                import.clone()
            }
            None => self
                .files
                .resolve(file)
                .map_err(|error| error.to_string())?,
        };
        // The stamp of a link is not that of its target.
        if self.asked.is_on() && !self.files.is_plain(file) {
            self.asked.discard();
        }
        let seen = match self.cache.look(&path) {
            Ok(seen) => Some(seen),
            Err(error) if is_absent(&error) => None,
            Err(error) => {
                self.asked.discard();
                return Err(format!("`{file}`: {error}"));
            }
        };
        self.asked.file(file, seen);
        Ok(seen.map(|seen| seen.digest))
    }

    fn evaluator(&self, stage: &Stage) -> Box<dyn Evaluator> {
        Box::new(JqWorkers::new(stage, &Arc::default()))
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
