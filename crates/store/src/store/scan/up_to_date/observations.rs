//! The observations of a run: what it read from the disk, with the results.

use super::log::{FileEvent, FileLog, Replacement, Seen, WrittenFile};
use super::place::{PathParts, file_at, is_own, parts, place};
use crate::store::disk::Disk;
use crate::store::scan::stamp::FileStamp;
use crate::store::scan::statcache::HashedFile;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::model::state::ManifestPage;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The observations of a run. They are discarded as soon as the run reads something that cannot be checked again cheaply, or that
/// changed meanwhile.
#[derive(Debug)]
pub struct Observations(Mutex<Option<Questions>>);

/// Questions with their answers.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The events of files.
    pub(crate) log: FileLog,
    /// Patterns, with the digest of the matching names.
    pub(crate) lists: BTreeMap<(Root, String), ListedNames>,
    /// Whether a folder lies there.
    pub(crate) folders: BTreeMap<(Root, String), bool>,
    /// Milepost's own folders, with the digest of all names in them.
    pub(crate) names: BTreeMap<String, Digest>,
    /// Files of the workspace that were written or removed, in a run that continues from earlier notes.
    pub(crate) replaced: HashSet<FilePath>,
    /// Whether the run added or removed files of the workspace.
    pub(crate) renamed: bool,
    /// The files that differ from the notes of an earlier run, which these continue.
    pub(crate) differing: Option<HashSet<FilePath>>,
    /// The pages of the manifests, where they are known.
    pub(crate) pages: NotedPages,
    /// Those that the earlier run noted.
    pub(crate) before: NotedPages,
    /// Milepost's own files that are as the earlier run noted them; `None`: all of them.
    pub(crate) kept: Option<HashSet<String>>,
}

/// The pages of manifests by stage.
pub type NotedPages = BTreeMap<String, NotedManifest>;

/// The pages of a stage's manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NotedManifest {
    /// The number of the stage that they name.
    pub number: u32,
    pub pages: Vec<ManifestPage>,
}

/// The names that matched a pattern, as a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListedNames {
    pub(crate) digest: Digest,
    /// The stamp of the one folder that they lie in, if the same stamp means the same names.
    pub(crate) folder: Option<FileStamp>,
}

impl Questions {
    /// Returns the files whose earlier notes are no longer valid, in order.
    pub(super) fn gone(&self) -> Vec<PathParts<'_>> {
        let differing = self.differing.iter().flatten();
        let mut gone: Vec<PathParts<'_>> = differing.chain(&self.replaced).map(place).collect();
        gone.sort_unstable();
        gone
    }

    /// Does what [`Observations::look_again`] says. Returns false if a file is not as it was written, or what was seen of one differs.
    fn look_again(
        &mut self,
        mut look: impl FnMut(&FilePath, WrittenFile) -> Option<HashedFile>,
    ) -> io::Result<bool> {
        let empty = self.log.anew();
        let mut earlier = std::mem::replace(&mut self.log, empty);
        for file in earlier.files()? {
            let file = file?;
            let (root, folder, name) = file.place();
            let seen = match (file.replaced, file.seen) {
                (Some(Replacement(Some(written))), _) => {
                    let path = file_at(file.place()).ok_or(io::ErrorKind::InvalidData)?;
                    let now = look(&path, written);
                    if now.is_some_and(|now| now.digest != written.digest) {
                        return Ok(false);
                    }
                    now.map(Some)
                }
                (None, Some(Seen(seen))) if root == Root::Project || !is_own(folder, name) => {
                    if file.is_ambiguous {
                        return Ok(false);
                    }
                    Some(seen)
                }
                _ => None,
            };
            if let Some(seen) = seen {
                self.log.add(file.place(), &FileEvent::Seen(seen))?;
            }
        }
        Ok(true)
    }
}

impl Observations {
    /// Starts recording.
    pub fn noting() -> Self {
        Self(Mutex::new(Some(Questions::default())))
    }

    /// Starts recording on top of an earlier run from which only these files differ, and which noted these pages.
    pub fn since(differing: HashSet<FilePath>, pages: NotedPages) -> Self {
        let questions = Questions {
            differing: Some(differing),
            before: pages.clone(),
            pages,
            ..Questions::default()
        };
        Self(Mutex::new(Some(questions)))
    }

    /// Records nothing.
    pub fn off() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns true if observations are recorded.
    pub fn is_on(&self) -> bool {
        self.questions().is_some()
    }

    /// Discards the observations, because what follows cannot be checked again.
    pub fn discard(&self) {
        *self.questions() = None;
    }

    /// Keeps few observations of files in memory. The others go to a temporary file at this path.
    #[must_use]
    pub fn spilling(self, disk: &Disk, path: &Path) -> Self {
        self.note(|questions| {
            questions.log = FileLog::spilling(disk, path);
            true
        });
        self
    }

    /// Notes that a file of the workspace was written with this digest or removed, so that earlier observations of it are void.
    /// `renames`: patterns that name outputs may match other files now.
    pub fn replaced(&self, path: &RelPath, written: Option<Digest>, renames: bool) {
        self.note(|questions| {
            questions.renamed |= renames;
            if questions.differing.is_some() {
                questions.replaced.insert(FilePath::workspace(path.clone()));
            }
            let event = FileEvent::Replaced(written);
            questions.log.add(place_in_workspace(path), &event).is_ok()
        });
    }

    /// Notes the stamp that proves the content of a file that was written.
    pub fn prove(&self, path: &RelPath, stamp: FileStamp) {
        self.note(|questions| {
            let event = FileEvent::Proved(stamp);
            questions.log.add(place_in_workspace(path), &event).is_ok()
        });
    }

    /// Returns the files changed since the last up-to-date check; `None` if unknown.
    pub fn differing(&self) -> Option<ChangedFiles> {
        let questions = self.questions();
        let questions = questions.as_ref()?;
        let before = questions.differing.as_ref()?;
        Some(ChangedFiles {
            files: before
                .iter()
                .chain(&questions.replaced)
                .map(FilePath::text)
                .collect(),
            wrote: !questions.replaced.is_empty(),
            renamed: questions.renamed,
        })
    }

    /// Notes the pages of a stage's manifest; `None`: they are unknown.
    pub fn note_pages(&self, stage: &str, noted: Option<NotedManifest>) {
        self.note(|questions| {
            match noted {
                Some(noted) => questions.pages.insert(stage.to_owned(), noted),
                None => questions.pages.remove(stage),
            };
            true
        });
    }

    /// Returns the pages of the manifests that the earlier run noted, and those that are known now.
    pub fn pages_before_and_now(&self) -> (NotedPages, NotedPages) {
        let questions = self.questions();
        let both = questions.as_ref();
        let both = both.map(|questions| (questions.before.clone(), questions.pages.clone()));
        both.unwrap_or_default()
    }

    /// Returns the pages of the manifests, where they are known.
    pub fn pages(&self) -> NotedPages {
        let questions = self.questions();
        let noted = questions.as_ref().map(|questions| questions.pages.clone());
        noted.unwrap_or_default()
    }

    /// Returns true if the recording continues from the notes of an earlier run.
    pub fn is_continued(&self) -> bool {
        let questions = self.questions();
        questions
            .as_ref()
            .is_some_and(|questions| questions.differing.is_some())
    }

    /// Records which of Milepost's own files are as the earlier run noted them. The others must be observed again.
    pub fn keep_own(&self, kept: HashSet<String>) {
        self.note(|questions| {
            questions.kept = Some(kept);
            true
        });
    }

    /// Forgets observations of Milepost's own files and of files that were written or removed since. A file that was written counts
    /// as `look` returns it; `None`: as nothing. If its content is not what was written, all observations are discarded.
    pub fn look_again(&self, look: impl FnMut(&FilePath, WrittenFile) -> Option<HashedFile>) {
        self.note(|questions| questions.look_again(look).unwrap_or(false));
    }

    /// Records a file; `seen` is `None` if it did not exist.
    pub fn file(&self, file: &FilePath, seen: Option<HashedFile>) {
        self.note(|questions| {
            let event = FileEvent::Seen(seen);
            questions.log.add(place(file), &event).is_ok()
        });
    }

    /// Records the matches of a pattern; `folder` is the stamp that the folder with all matches had before, if the
    /// folder had been left alone long enough.
    pub fn list(&self, root: Root, pattern: &str, found: &[RelPath], folder: Option<FileStamp>) {
        let digest = names_digest(found.iter().map(RelPath::as_str));
        let listed = ListedNames { digest, folder };
        self.note(|questions| {
            let before = questions.lists.insert((root, pattern.to_owned()), listed);
            before.is_none_or(|before| before.digest == digest)
        });
    }

    /// Records whether a folder exists.
    pub fn folder(&self, file: &FilePath, is_folder: bool) {
        self.note(|questions| {
            let key = (file.root, file.path.as_str().to_owned());
            let before = questions.folders.insert(key, is_folder);
            before.is_none_or(|before| before == is_folder)
        });
    }

    /// Records the names in a folder of Milepost's own.
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

    pub(super) fn questions(&self) -> MutexGuard<'_, Option<Questions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place_in_workspace(path: &RelPath) -> PathParts<'_> {
    let (folder, name) = parts(path.as_str());
    (Root::Workspace, folder, name)
}

/// The files changed since the last up-to-date check.
#[derive(Debug)]
pub struct ChangedFiles {
    files: HashSet<Arc<str>>,
    wrote: bool,
    renamed: bool,
}

impl ChangedFiles {
    /// Returns true if the file that a fact names is among them.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains(name)
    }

    /// Returns their names, as facts name them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|name| &**name)
    }

    /// Returns true if the current run added or removed files, so that patterns may match other files.
    pub fn renamed(&self) -> bool {
        self.renamed
    }

    /// Returns true if the current run wrote any of them, so that records changed too.
    pub fn wrote(&self) -> bool {
        self.wrote
    }
}

/// Returns the digest of a list of names.
pub(super) fn names_digest<'a>(names: impl Iterator<Item = &'a str>) -> Digest {
    let mut hasher = milepost_core::base::digest::Hasher::new();
    for name in names {
        hasher.update(name);
        hasher.update("\n");
    }
    hasher.finish()
}
