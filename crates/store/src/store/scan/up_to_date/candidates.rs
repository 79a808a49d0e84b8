//! The only files of a workspace that may have changed, if the system reported all changes.

use super::form::KnownFile;
use super::place::{file_at, is_own, parts};
use crate::store::scan::files::Files;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, RelPath, Root};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// Files of a workspace that may have changed. Files of the project, and Milepost's own, may have changed in any case.
#[derive(Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The names by folder; the root is the empty text.
    folders: HashMap<String, BTreeSet<String>>,
}

impl Candidates {
    /// Returns the candidates with these paths.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a RelPath>) -> Self {
        let mut folders: HashMap<String, BTreeSet<String>> = HashMap::new();
        for path in paths {
            let (folder, name) = parts(path.as_str());
            if is_own(folder, name) {
                continue;
            }
            let names = folders.entry(folder.to_owned()).or_default();
            names.insert(name.to_owned());
        }
        Self { folders }
    }

    /// Returns the names of the candidates in a folder.
    pub(super) fn names(&self, folder: &str) -> Option<&BTreeSet<String>> {
        self.folders.get(folder)
    }

    /// Returns true if a candidate is one of the noted files of a folder, from a first name to a last one, or is a folder above them.
    pub(super) fn concern(&self, folder: &str, [first, last]: [&str; 2]) -> bool {
        let names = self.names(folder);
        let next = names.and_then(|names| {
            let mut names = names.range::<str, _>((Bound::Included(first), Bound::Unbounded));
            names.next()
        });
        next.is_some_and(|name| name.as_str() <= last) || self.has_folder(folder)
    }

    /// Returns true if a candidate is this folder, or one above it.
    pub(super) fn has_folder(&self, folder: &str) -> bool {
        let mut at = folder;
        while !at.is_empty() {
            let (above, name) = parts(at);
            if self.names(above).is_some_and(|names| names.contains(name)) {
                return true;
            }
            at = above;
        }
        false
    }

    /// Returns true if the candidates are files, and every pattern matches the same files as before. Notes are not about links.
    pub(super) fn are_known(&self, found: &FoundCandidates, files: &Files) -> bool {
        let globs = found.patterns.iter().map(|pattern| Glob::parse(pattern));
        let Ok(globs) = globs.collect::<Result<Vec<Glob>, _>>() else {
            return false;
        };
        let folders = self.folders.iter();
        let mut all =
            folders.flat_map(|(folder, names)| names.iter().map(move |name| (folder, name)));
        all.all(|(folder, name)| {
            let Some(FilePath { path, .. }) = file_at((Root::Workspace, folder, name)) else {
                return false;
            };
            let place = files.folder(Root::Workspace).join(path.as_str());
            let there = place.symlink_metadata();
            let is_there = there.is_ok();
            if there.is_ok_and(|there| there.is_dir()) {
                return false;
            }
            match found.files.get(path.as_str()) {
                None | Some(KnownFile::Absent) if !is_there => true,
                Some(KnownFile::Stamp(_) | KnownFile::Content(_)) if is_there => true,
                _ => !globs.iter().any(|glob| glob.matches(&path)),
            }
        })
    }
}

/// The candidate files and the patterns in the notes.
#[derive(Debug, Default)]
pub(super) struct FoundCandidates {
    /// The files, with what is known of them.
    pub(crate) files: HashMap<String, KnownFile>,
    /// The patterns of files of the workspace.
    pub(crate) patterns: Vec<String>,
}

impl FoundCandidates {
    pub(super) fn add(&mut self, file: &FilePath, known: KnownFile) {
        self.files.insert(file.path.as_str().to_owned(), known);
    }
}
