//! The files of an attempt in its scratch folder, at the paths that they will have in the workspace.

use crate::steps::batch_context::OutputDir;
use crate::steps::cancel::CancelToken;
use milepost_core::base::glob::{Glob, is_starred};
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::base::source::{Sink, Source};
use milepost_core::model::stage::Stage;
use milepost_store::store::read;
use milepost_store::store::scratch::Scratch;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of files that only later steps read.
const BETWEEN: &str = ".steps";

/// The files of an attempt.
pub(crate) struct ScratchOutputDir<'a> {
    scratch: &'a Scratch,
    targets: &'a BTreeMap<String, RelPath>,
    cancel: &'a Arc<CancelToken>,
    /// Outputs with one file for each iteration.
    per_round: BTreeSet<&'a str>,
    iteration: AtomicU32,
}

/// A file in scratch, named by the path that it will have.
pub(crate) struct ScratchFile {
    shown: String,
    place: PathBuf,
}

impl ScratchFile {
    /// Returns the file at a path in the scratch folder.
    pub(crate) fn new(scratch: &Scratch, path: &RelPath) -> Self {
        Self {
            shown: FilePath::workspace(path.clone()).to_string(),
            place: scratch.at(path),
        }
    }
}

impl Source for ScratchFile {
    fn name(&self) -> String {
        self.shown.clone()
    }

    fn path(&self) -> &Path {
        &self.place
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(read::open(&self.place)?))
    }
}

impl<'a> ScratchOutputDir<'a> {
    /// Opens a scratch folder. `targets` contains the paths and patterns of the outputs. `cancel` ends reading and writing.
    pub(crate) fn new(
        scratch: &'a Scratch,
        stage: &'a Stage,
        targets: &'a BTreeMap<String, RelPath>,
        cancel: &'a Arc<CancelToken>,
    ) -> Self {
        let outputs = stage.outputs.iter().filter(|output| output.per_round);
        Self {
            scratch,
            targets,
            cancel,
            per_round: outputs.map(|output| output.name.as_str()).collect(),
            iteration: AtomicU32::new(1),
        }
    }

    /// Returns the path or pattern of an output or `out` in the scratch folder, for the current iteration.
    fn target(&self, out: &str) -> io::Result<RelPath> {
        let pattern = self.pattern(out)?;
        if !self.per_round.contains(out) {
            return Ok(pattern);
        }
        let number = self.iteration.load(Ordering::Relaxed).to_string();
        RelPath::parse(&pattern.as_str().replace('*', &number)).map_err(io::Error::other)
    }

    /// Returns the path or pattern of an output or `out` in the scratch folder.
    pub(crate) fn pattern(&self, out: &str) -> io::Result<RelPath> {
        if let Some(path) = self.targets.get(out) {
            return Ok(path.clone());
        }
        RelPath::parse(&format!("{BETWEEN}/{out}")).map_err(io::Error::other)
    }

    /// Returns the files of an output or `out`, by their paths in the scratch folder, in natural order.
    ///
    /// # Errors
    /// When a folder cannot be read, or a link or folder lies at the path of a file.
    pub(crate) fn files(&self, out: &str) -> io::Result<Vec<RelPath>> {
        self.files_at(self.pattern(out)?)
    }

    fn files_at(&self, target: RelPath) -> io::Result<Vec<RelPath>> {
        if !is_starred(&target) {
            return Ok(if self.is_file(&target)? {
                vec![target]
            } else {
                Vec::new()
            });
        }
        let glob = Glob::of_output(&target).map_err(io::Error::other)?;
        if !self.scratch.is_folder() {
            let mut found = self.scratch.files();
            found.retain(|file| glob.matches_hidden(file));
            found.sort_by(|a, b| milepost_core::base::natural::natural(a.as_str(), b.as_str()));
            return Ok(found);
        }
        let folder = glob.folder();
        let at = folder.as_ref().map_or_else(
            || self.scratch.path().to_owned(),
            |folder| self.scratch.path().join(folder.as_str()),
        );
        let mut found = Vec::new();
        let entries = match std::fs::read_dir(at) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry?.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| {
                    io::Error::other(format!("the name `{}` is not UTF-8", name.display()))
                })?
                .to_owned();
            let path = match &folder {
                Some(folder) => folder.join(&name),
                None => RelPath::parse(&name),
            };
            let path = path.map_err(io::Error::other)?;
            if glob.matches_hidden(&path) && self.is_file(&path)? {
                found.push(path);
            }
        }
        found.sort_by(|a, b| milepost_core::base::natural::natural(a.as_str(), b.as_str()));
        Ok(found)
    }

    fn is_file(&self, path: &RelPath) -> io::Result<bool> {
        if !self.scratch.is_folder() {
            return Ok(self.scratch.made(path).is_some());
        }
        match std::fs::symlink_metadata(self.scratch.path().join(path.as_str())) {
            Ok(found) if found.is_file() => Ok(true),
            Ok(_) => Err(io::Error::other(format!(
                "`{path}` is a link, a folder or a special file: an output is a regular file"
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl OutputDir for ScratchOutputDir<'_> {
    fn create(&self, out: &str, star: Option<&str>) -> io::Result<Box<dyn Sink>> {
        let target = self.target(out)?;
        let path = match star {
            Some(star) => {
                RelPath::parse(&target.as_str().replace('*', star)).map_err(io::Error::other)?
            }
            None => target,
        };
        let sink = self.scratch.sink(&path).map_err(io::Error::other)?;
        Ok(self.cancel.sink(sink))
    }

    fn program_path(&self, out: &str) -> io::Result<PathBuf> {
        let target = self.target(out)?;
        self.scratch
            .make_folder_of(&target)
            .map_err(io::Error::other)?;
        Ok(self.scratch.at(&target))
    }

    fn write_helper(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = RelPath::parse(name).map_err(io::Error::other)?;
        let mut sink = self.scratch.sink(&path).map_err(io::Error::other)?;
        sink.write_all(bytes)?;
        sink.finish()?;
        Ok(self.scratch.at(&path))
    }

    fn set_iteration(&self, number: u32) {
        self.iteration.store(number, Ordering::Relaxed);
    }

    fn clear(&self, out: &str) -> io::Result<()> {
        for file in self.files_at(self.target(out)?)? {
            self.scratch.forget(&file).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn written(&self, out: &str) -> io::Result<Vec<Arc<dyn Source>>> {
        let files = self.files_at(self.target(out)?)?;
        Ok(files
            .into_iter()
            .map(|path| {
                let file = Arc::new(ScratchFile::new(self.scratch, &path));
                self.cancel.source(file)
            })
            .collect())
    }
}
