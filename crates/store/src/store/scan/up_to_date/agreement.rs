//! Compares what a run read with the notes that it continues.

use super::changes::NotesChanges;
use super::form::{self, FileEntries, KnownFile, NotesBlock, NotesReader};
use super::log::{FileState, Seen};
use super::observations::{Observations, Questions};
use super::place::{PathParts, is_own, place};
use crate::store::read;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use std::collections::HashSet;
use std::io::{self, BufReader};
use std::path::Path;

impl Observations {
    /// Returns true if everything that the run read is as the notes in a file say, except for the files that differed at the check and
    /// those that the run wrote. Otherwise something changed after the check, or unnoticed by it, and batches that the run took for up
    /// to date may depend on it.
    pub fn agree_with(&self, path: &Path, key: Digest) -> bool {
        let mut questions = self.questions();
        let Some(questions) = questions.as_mut() else {
            return true;
        };
        questions.differing.is_none() || agree(questions, path, key).unwrap_or(false)
    }
}

/// Compares the answers with the notes; `None` if there are no notes.
fn agree(questions: &mut Questions, path: &Path, key: Digest) -> Option<bool> {
    let answers = unexplained(questions).ok()?;
    let answers = SeenFiles(&answers);
    let file = BufReader::with_capacity(form::SKIP_BUFFER, read::open(path).ok()?);
    let (mut reader, _) = NotesReader::begin(file, key, None).ok()??;
    reader.skip(|root, folder, [first, last]| {
        let next = answers.from((root, folder, first)).first();
        next.is_none_or(|next| next.place() > (root, folder, last))
    });
    let (base, _) = form::seal(path)?;
    let changes = NotesChanges::read(path, key, base);
    let newer = changes.blocks.iter();
    if !newer
        .clone()
        .all(|block| holds(block, None, questions, answers))
    {
        return Some(false);
    }
    loop {
        match reader.block().ok()? {
            NotesBlock::End => return Some(true),
            block if changes.replace(&block) => {}
            block => {
                let replaced = match &block {
                    NotesBlock::Files { root, folder, .. } => changes.names(*root, folder),
                    _ => None,
                };
                if !holds(&block, replaced, questions, answers) {
                    return Some(false);
                }
            }
        }
    }
}

/// Files that the run read, by place.
#[derive(Clone, Copy)]
struct SeenFiles<'a>(&'a [FileState]);

impl<'a> SeenFiles<'a> {
    /// Those at and after a place.
    fn from(self, place: PathParts<'_>) -> &'a [FileState] {
        let at = self.0.partition_point(|answer| answer.place() < place);
        &self.0[at..]
    }

    /// As the run saw a file last; none if it did not look.
    fn at(self, place: PathParts<'_>) -> Option<Seen> {
        let found = self.from(place).first();
        found.filter(|found| found.place() == place)?.seen
    }
}

/// Returns the files that the run read, except for those that may differ from the notes.
fn unexplained(questions: &mut Questions) -> io::Result<Vec<FileState>> {
    let differing: HashSet<PathParts<'_>> =
        questions.differing.iter().flatten().map(place).collect();
    let mut files = Vec::new();
    for file in questions.log.files()? {
        let file = file?;
        let (root, folder, name) = file.place();
        let is_own = root == Root::Workspace && is_own(folder, name);
        let is_explained = file.replaced.is_some() || differing.contains(&file.place());
        if file.seen.is_some() && !is_own && !is_explained {
            files.push(file);
        }
    }
    Ok(files)
}

/// Returns true if a block of the notes agrees with the answers. `replaced`: the names of files that later notes replace.
fn holds(
    block: &NotesBlock,
    replaced: Option<&HashSet<String>>,
    questions: &Questions,
    answers: SeenFiles<'_>,
) -> bool {
    match block {
        // Lists are compared only if the run added and removed no files: its own may be in them.
        NotesBlock::List {
            root,
            pattern,
            listed,
        } if !questions.renamed => {
            let again = questions.lists.get(&(*root, pattern.clone()));
            again.is_none_or(|again| again.digest == listed.digest)
        }
        NotesBlock::Files {
            root,
            folder,
            device,
            entries,
            ..
        } => FileEntries::of(*device, entries).all(|(entry, _)| {
            let Some(entry) = entry else {
                return false;
            };
            let seen = answers.at((*root, folder.as_str(), entry.name));
            let is_replaced = replaced.is_some_and(|names| names.contains(entry.name));
            match (seen, entry.known) {
                (None, _) | (_, KnownFile::Forgotten) => true,
                _ if is_replaced => true,
                (Some(Seen(None)), KnownFile::Absent) => true,
                (Some(Seen(Some(seen))), KnownFile::Stamp(stamp)) => seen.stamp == stamp,
                (Some(Seen(Some(seen))), KnownFile::Content(digest)) => seen.digest == digest,
                _ => false,
            }
        }),
        _ => true,
    }
}
