//! Lists the files that match a pattern.

use super::files::{FileError, Files};
use crate::store::layout::OWN;
use crate::store::read;
use milepost_core::base::glob::Glob;
use milepost_core::base::natural::natural;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::reserved;
use milepost_core::plan::world::{Matches, RefusedFile};
use std::io;
use std::path::{Path, PathBuf};

impl Files {
    /// Lists the files that match as [`Files::list_on_disk`] does, with redirects.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn list(&self, glob: &Glob, root: Root) -> Result<Matches, FileError> {
        let mut found = self.list_on_disk(glob, root)?;
        if root == Root::Workspace {
            let redirects = self.redirects().into_iter();
            let redirects: Vec<_> = redirects.filter(|(path, _)| glob.matches(path)).collect();
            if !redirects.is_empty() {
                found
                    .files
                    .retain(|path| redirects.iter().all(|(redirected, _)| redirected != path));
                let there = redirects.into_iter().filter(|(_, is_there)| *is_there);
                found.files.extend(there.map(|(path, _)| path));
                found.files.sort_by(|a, b| natural(a.as_str(), b.as_str()));
            }
        }
        Ok(found)
    }

    /// Lists the files that match, without Milepost's own files. A match is refused if a link leads out of the root or to nothing,
    /// if it is not a regular file, or if its name cannot be recorded.
    ///
    /// # Errors
    /// If a folder cannot be read.
    fn list_on_disk(&self, glob: &Glob, root: Root) -> Result<Matches, FileError> {
        let base = self.folder(root);
        let start = match glob.folder() {
            Some(folder) => {
                let path = folder.clone();
                self.resolve(&FilePath { root, path })?
            }
            None => base.to_owned(),
        };
        if !start.is_dir() {
            return Ok(Matches::default());
        }
        let is_left_out = |entry: &walkdir::DirEntry| {
            let is_folder = || entry.file_type().is_dir();
            entry.file_name() == OWN || !glob.may_enter(entry.file_name()) && is_folder()
        };
        let deepest = depth_of(glob);
        let mut walk = walkdir::WalkDir::new(&start)
            .follow_links(true)
            .min_depth(1)
            .max_depth(deepest)
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || !is_left_out(entry));
        let mut found = Matches::default();
        while let Some(entry) = walk.next() {
            let (path, matched) = match &entry {
                Ok(entry) if entry.file_type().is_dir() => {
                    if !entry.path_is_symlink() || entry.depth() >= deepest {
                        continue;
                    }
                    let inside = stays_inside(root, base, entry.path());
                    if inside.is_err() {
                        walk.skip_current_dir();
                    }
                    (entry.path(), inside.map(|()| None))
                }
                Ok(entry) => (entry.path(), self.usable(glob, root, entry)),
                Err(error) => {
                    let path = error.path().unwrap_or(&start);
                    let Ok(target) = path.read_link() else {
                        return Err(FileError::Read {
                            file: escaped(base, path),
                            source: io::Error::other(error.to_string()),
                        });
                    };
                    (path, dead_link(glob, base, path, target))
                }
            };
            match matched {
                Ok(Some(path)) => found.files.push(path),
                Ok(None) => {}
                Err(error) => found.refused.push(RefusedFile {
                    name: escaped(base, path),
                    why: error.to_string(),
                }),
            }
        }
        found.files.sort_by(|a, b| natural(a.as_str(), b.as_str()));
        found.refused.sort_by(|a, b| natural(&a.name, &b.name));
        Ok(found)
    }

    /// Returns the path of an entry that is not a folder, if it matches.
    ///
    /// # Errors
    /// If it matches and cannot be used.
    fn usable(
        &self,
        glob: &Glob,
        root: Root,
        entry: &walkdir::DirEntry,
    ) -> Result<Option<RelPath>, FileError> {
        let Some(path) = matching(glob, self.folder(root), entry.path())? else {
            return Ok(None);
        };
        let is_progress = || root == Root::Workspace && self.is_progress(&path);
        if reserved(root, &path).is_some() || is_progress() {
            return Ok(None);
        }
        let file = FilePath { root, path };
        if entry.path_is_symlink() {
            self.resolve(&file)?;
        }
        if entry.file_type().is_file() {
            return Ok(Some(file.path));
        }
        let found = read::kind_of(entry.file_type());
        Err(FileError::NoFile { file, found })
    }
}

/// Returns an error if a dangling link matches. Editors leave such links; they matter only if they match.
fn dead_link(
    glob: &Glob,
    base: &Path,
    path: &Path,
    target: PathBuf,
) -> Result<Option<RelPath>, FileError> {
    match matching(glob, base, path)? {
        Some(file) => Err(FileError::Dead {
            file: file.to_string(),
            target,
        }),
        None => Ok(None),
    }
}

/// Returns a path in its root as text. Bytes that are not UTF-8, control characters and backslashes are escaped, so that different
/// paths stay different.
fn escaped(base: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(base).unwrap_or(path);
    let mut text = String::new();
    for chunk in inside.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == '\\' {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Returns the path of an entry in its root, if it matches.
fn matching(glob: &Glob, base: &Path, entry: &Path) -> Result<Option<RelPath>, FileError> {
    let inside = entry.strip_prefix(base).unwrap_or(entry);
    if let Some(path) = inside.to_str().and_then(|text| RelPath::parse(text).ok()) {
        return Ok(glob.matches(&path).then_some(path));
    }
    // Told apart by what a reader would take the name for.
    let plain: String = inside
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_control() || c == '\\' { '_' } else { c })
        .collect();
    match RelPath::parse(&plain) {
        Ok(plain) if glob.matches(&plain) => Err(FileError::Name {
            file: escaped(base, entry),
        }),
        _ => Ok(None),
    }
}

/// That a linked folder, below which matches can lie, is in the root.
fn stays_inside(root: Root, base: &Path, folder: &Path) -> Result<(), FileError> {
    let file = folder.display().to_string();
    let target = folder
        .canonicalize()
        .map_err(|source| FileError::Read { file, source })?;
    if target.starts_with(base) {
        return Ok(());
    }
    let inside = folder.strip_prefix(base).unwrap_or(folder);
    match inside.to_str().and_then(|text| RelPath::parse(text).ok()) {
        Some(path) => Err(FileError::Leaves {
            file: FilePath { root, path },
            target,
        }),
        None => Err(FileError::Name {
            file: escaped(base, folder),
        }),
    }
}

/// How deep below the glob's folder a match can lie.
fn depth_of(glob: &Glob) -> usize {
    let folder = glob.folder();
    let after = folder.map_or(0, |folder| folder.as_str().len() + 1);
    let rest = &glob.as_str()[after..];
    if rest.split('/').any(|part| part == "**") {
        usize::MAX
    } else {
        rest.split('/').count()
    }
}
