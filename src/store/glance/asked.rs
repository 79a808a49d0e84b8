//! What a run asked of the disk, and what it was told.

use super::form;
use crate::base::digest::Digest;
use crate::base::path::{FilePath, RelPath, Root};
use crate::store::disk::{Disk, DiskError};
use crate::store::stamp::Stamp;
use crate::store::statcache::Seen;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The notes of a run. They are of no use, and no longer taken, once something was asked that cannot be asked again cheaply, or
/// was answered in two ways.
#[derive(Debug)]
pub struct Asked(Mutex<Option<Questions>>);

/// Questions with their answers.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Files as they were asked for; none when there was no file.
    pub files: Vec<(FilePath, Option<Seen>)>,
    /// Patterns, with the digest of the matching names.
    pub lists: BTreeMap<(Root, String), Listed>,
    /// Whether a folder lies there.
    pub folders: BTreeMap<(Root, String), bool>,
    /// Milepost's own folders, with the digest of all names in them.
    pub names: BTreeMap<String, Digest>,
}

/// What a pattern stood for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    /// The digest of the names.
    pub digest: Digest,
    /// The stamp of the one folder that they lie in, if the same stamp means the same names.
    pub folder: Option<Stamp>,
}

impl Questions {
    /// The files by root, folder (empty: the root) and name, each once as it was seen last; none when the content of one was
    /// another at another time.
    pub(super) fn sorted(&self) -> Option<Vec<Found<'_>>> {
        let mut all: Vec<Found<'_>> = self.files.iter().map(Found::of).collect();
        all.sort_by_key(Found::place);
        let digest = |found: &Found<'_>| found.seen.map(|seen| seen.digest);
        let mut sorted: Vec<Found<'_>> = Vec::with_capacity(all.len());
        for found in all {
            match sorted.last_mut() {
                Some(last) if last.place() == found.place() => {
                    if digest(last) != digest(&found) {
                        return None;
                    }
                    *last = found;
                }
                _ => sorted.push(found),
            }
        }
        Some(sorted)
    }
}

/// A file as it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    pub root: Root,
    pub folder: &'a str,
    pub name: &'a str,
    pub seen: Option<Seen>,
}

impl<'a> Found<'a> {
    fn of((file, seen): &'a (FilePath, Option<Seen>)) -> Self {
        let path = file.path.as_str();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Self {
            root: file.root,
            folder,
            name,
            seen: *seen,
        }
    }

    fn place(&self) -> (Root, &'a str, &'a str) {
        (self.root, self.folder, self.name)
    }
}

impl Asked {
    /// Takes notes.
    pub fn noting() -> Self {
        Self(Mutex::new(Some(Questions::default())))
    }

    /// Takes none.
    pub fn off() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether notes are taken.
    pub fn is_on(&self) -> bool {
        self.questions().is_some()
    }

    /// Ends the notes: what follows could not be asked again, or the disk is being changed.
    pub fn spoil(&self) {
        *self.questions() = None;
    }

    /// A file was looked at; `seen` is none when it was not there.
    pub fn file(&self, file: &FilePath, seen: Option<Seen>) {
        self.note(|questions| {
            questions.files.push((file.clone(), seen));
            true
        });
    }

    /// A pattern was looked up; `folder` is the stamp, taken before, of the folder that all matches lie in, if it was settled.
    pub fn list(&self, root: Root, pattern: &str, found: &[RelPath], folder: Option<Stamp>) {
        let digest = names_digest(found.iter().map(RelPath::as_str));
        let listed = Listed { digest, folder };
        self.note(|questions| {
            let before = questions.lists.insert((root, pattern.to_owned()), listed);
            before.is_none_or(|before| before.digest == digest)
        });
    }

    /// It was asked whether a folder lies there.
    pub fn folder(&self, file: &FilePath, is_folder: bool) {
        self.note(|questions| {
            let key = (file.root, file.path.as_str().to_owned());
            let before = questions.folders.insert(key, is_folder);
            before.is_none_or(|before| before == is_folder)
        });
    }

    /// The names in a folder of Milepost's own matter.
    pub fn names(&self, folder: &RelPath, names: &[String]) {
        let digest = names_digest(names.iter().map(String::as_str));
        self.note(|questions| {
            questions.names.insert(folder.as_str().to_owned(), digest);
            true
        });
    }

    fn note(&self, take: impl FnOnce(&mut Questions) -> bool) {
        let mut held = self.questions();
        if let Some(questions) = held.as_mut()
            && !take(questions)
        {
            *held = None;
        }
    }

    /// Keeps the notes under the digest of everything else that the run went by, with what it told.
    ///
    /// # Errors
    /// What the disk says. The file being a cache, a run can go on.
    pub fn keep(
        &self,
        disk: &Disk,
        path: &Path,
        key: Digest,
        told: &[u8],
    ) -> Result<(), DiskError> {
        let held = self.questions();
        match held
            .as_ref()
            .and_then(|questions| form::write(questions, key, told))
        {
            Some(bytes) => disk.write_swap(path, &bytes),
            None => Ok(()),
        }
    }

    fn questions(&self) -> MutexGuard<'_, Option<Questions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The digest of a list of names.
pub(super) fn names_digest<'a>(names: impl Iterator<Item = &'a str>) -> Digest {
    let mut hasher = crate::base::digest::Hasher::new();
    for name in names {
        hasher.update(name);
        hasher.update("\n");
    }
    hasher.finish()
}
