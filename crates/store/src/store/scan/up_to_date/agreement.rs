//! Compares what a run read with the notes that it continues.

use super::changes::NotesChanges;
use super::form::{self, FileEntries, KnownFile, NotesBlock, NotesReader};
use super::observations::{Observations, PathParts, Questions, is_own, place};
use crate::store::read;
use crate::store::scan::statcache::HashedFile;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use std::collections::{BTreeMap, HashSet};
use std::io::BufReader;
use std::path::Path;

impl Observations {
    /// Returns true if everything that the run read is as the notes in a file say, except for the files that differed at the check and
    /// those that the run wrote. Otherwise something changed after the check, or unnoticed by it, and batches that the run took for up
    /// to date may depend on it.
    pub fn agree_with(&self, path: &Path, key: Digest) -> bool {
        let questions = self.questions();
        let Some(questions) = questions.as_ref() else {
            return true;
        };
        questions.differing.is_none() || agree(questions, path, key).unwrap_or(false)
    }
}

/// Compares the answers with the notes; `None` if there are no notes.
fn agree(questions: &Questions, path: &Path, key: Digest) -> Option<bool> {
    let answers = unexplained(questions);
    let file = BufReader::with_capacity(form::SKIP_BUFFER, read::open(path).ok()?);
    let (mut reader, _) = NotesReader::begin(file, key, None).ok()??;
    reader.skip(|root, folder, [first, last]| {
        let next = answers.range((root, folder, first)..).next();
        next.is_none_or(|(place, _)| *place > (root, folder, last))
    });
    let (base, _) = form::seal(path)?;
    let changes = NotesChanges::read(path, key, base);
    let newer = changes.blocks.iter();
    if !newer
        .clone()
        .all(|block| holds(block, None, questions, &answers))
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
                if !holds(&block, replaced, questions, &answers) {
                    return Some(false);
                }
            }
        }
    }
}

/// Returns the files that the run read, as it saw them, except for those that may differ from the notes.
fn unexplained(questions: &Questions) -> BTreeMap<PathParts<'_>, Option<HashedFile>> {
    let differing = questions.differing.iter().flatten();
    let explained: HashSet<PathParts<'_>> = differing
        .chain(questions.replaced.keys())
        .map(place)
        .collect();
    let answers = questions
        .files
        .iter()
        .map(|(file, seen)| (place(file), *seen));
    let answers = answers.filter(|(place, _)| {
        let (root, folder, name) = *place;
        let is_own = root == Root::Workspace && is_own(folder, name);
        !is_own && !explained.contains(place)
    });
    answers.collect()
}

/// Returns true if a block of the notes says the same as the answers. `replaced`: the names of files that later notes replace.
fn holds(
    block: &NotesBlock,
    replaced: Option<&HashSet<String>>,
    questions: &Questions,
    answers: &BTreeMap<PathParts<'_>, Option<HashedFile>>,
) -> bool {
    match block {
        // What the run wrote may be in the list.
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
            let seen = answers.get(&(*root, folder.as_str(), entry.name));
            let is_replaced = replaced.is_some_and(|names| names.contains(entry.name));
            match (seen, entry.known) {
                (None, _) | (_, KnownFile::Forgotten) => true,
                _ if is_replaced => true,
                (Some(None), KnownFile::Absent) => true,
                (Some(Some(seen)), KnownFile::Stamp(stamp)) => seen.stamp == stamp,
                (Some(Some(seen)), KnownFile::Content(digest)) => seen.digest == digest,
                _ => false,
            }
        }),
        _ => true,
    }
}
