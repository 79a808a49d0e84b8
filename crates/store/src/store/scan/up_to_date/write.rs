//! Writes the file format of notes (`form.rs`), piece by piece.

use super::form::{ABSENT, BY_CONTENT, BY_STAMP, FORGOTTEN, FORM, FileEntries, NotesBlock};
use super::log::{Seen, place_of};
use super::observations::{ListedNames, Questions};
use super::place::{PathParts, file_at, is_own};
use crate::store::scan::statcache::HashedFile;
use milepost_core::base::digest::{Digest, Hasher};
use milepost_core::base::path::Root;
use std::io::{self, ErrorKind, Write};

/// Maximum bytes of entries in a block of files, so that several threads share the work.
const BLOCK: usize = 32 << 10;

/// The error of observations that make no notes: a file had several contents, a name is too long, or earlier notes are damaged.
pub(super) const NO_NOTES: ErrorKind = ErrorKind::InvalidData;

/// Writes notes. Entries of earlier notes under the same key stay, unless they were checked again or do not hold any more. `base`
/// is the checksum of the notes that these ones change.
///
/// # Errors
/// When writing fails, or with [`NO_NOTES`].
pub(super) fn write(
    out: &mut dyn Write,
    questions: &mut Questions,
    before: Option<&mut dyn Iterator<Item = io::Result<NotesBlock>>>,
    base: Option<Digest>,
    key: Digest,
    payload: &[u8],
) -> io::Result<()> {
    let mut out = SealingWriter {
        out,
        hasher: Hasher::new(),
    };
    out.write_all(FORM)?;
    out.write_all(key.bytes())?;
    out.write_all(base.as_ref().map_or(&[0; 32], |base| base.bytes()))?;
    out.write_all(&length::<u32>(payload)?.to_le_bytes())?;
    out.write_all(payload)?;
    let mut asked = Vec::new();
    if let Some(before) = before {
        for file in questions.log.files()? {
            let file = file?;
            if file.seen.is_some() {
                asked.push(file.into_key());
            }
        }
        let gone = questions.gone();
        for block in before {
            carry(&mut out, block?, questions, &asked, &gone)?;
        }
    }
    for (folder, digest) in &questions.names {
        put_names(&mut out, folder, digest)?;
    }
    for ((root, pattern), listed) in &questions.lists {
        put_list(&mut out, *root, pattern, listed)?;
    }
    for ((root, path), is_folder) in &questions.folders {
        put_folder(&mut out, *root, path, *is_folder)?;
    }
    put_files(&mut out, questions)?;
    if base.is_some() {
        for place in questions.gone() {
            if !is_among(&asked, place) {
                let (root, folder, name) = place;
                let mut entries = vec![FORGOTTEN];
                text(&mut entries, name)?;
                close(&mut out, (root, folder, 0), &mut entries)?;
            }
        }
    }
    out.write_all(b"E")?;
    let seal = out.hasher.finish();
    out.out.write_all(seal.bytes())
}

/// A writer that hashes its output.
struct SealingWriter<'a> {
    out: &'a mut dyn Write,
    hasher: Hasher,
}

impl Write for SealingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns true if a place is one of these keys, which are in order.
fn is_among(keys: &[String], place: PathParts<'_>) -> bool {
    let found = keys.binary_search_by(|key| place_of(key).cmp(&place));
    found.is_ok()
}

/// Copies a block of an earlier file, without entries that were checked again or do not hold any more.
fn carry(
    out: &mut impl Write,
    block: NotesBlock,
    questions: &Questions,
    asked: &[String],
    gone: &[PathParts<'_>],
) -> io::Result<()> {
    match block {
        NotesBlock::Names { folder, digest } if !questions.names.contains_key(&folder) => {
            put_names(out, &folder, &digest)
        }
        NotesBlock::List {
            root,
            pattern,
            listed,
        } => {
            let place = (root, pattern);
            if questions.lists.contains_key(&place) {
                return Ok(());
            }
            put_list(out, root, &place.1, &listed)
        }
        NotesBlock::Folder {
            root,
            path,
            is_folder,
        } => {
            let place = (root, path);
            if questions.folders.contains_key(&place) {
                return Ok(());
            }
            put_folder(out, root, &place.1, is_folder)
        }
        NotesBlock::Files {
            root,
            folder,
            device,
            entries,
            ..
        } => {
            let mut kept = Vec::with_capacity(entries.len());
            for (entry, bytes) in FileEntries::of(device, &entries) {
                let place = (root, folder.as_str(), entry.ok_or(NO_NOTES)?.name);
                let is_void = root == Root::Workspace
                    && is_own(place.1, place.2)
                    && questions.kept.as_ref().is_some_and(|kept| {
                        let path = file_at(place);
                        path.is_none_or(|file| !kept.contains(file.path.as_str()))
                    });
                let is_gone = gone.binary_search(&place).is_ok();
                if !is_void && !is_gone && !is_among(asked, place) {
                    kept.extend_from_slice(bytes);
                }
            }
            if kept.is_empty() {
                return Ok(());
            }
            close(out, (root, &folder, device), &mut kept)
        }
        NotesBlock::Names { .. } | NotesBlock::End => Ok(()),
    }
}

fn put_names(out: &mut impl Write, folder: &str, digest: &Digest) -> io::Result<()> {
    out.write_all(b"N")?;
    text(out, folder)?;
    out.write_all(digest.bytes())
}

fn put_list(
    out: &mut impl Write,
    root: Root,
    pattern: &str,
    listed: &ListedNames,
) -> io::Result<()> {
    out.write_all(&[b'L', root_byte(root)])?;
    text(out, pattern)?;
    out.write_all(listed.digest.bytes())?;
    out.write_all(&[u8::from(listed.folder.is_some())])?;
    if let Some(folder) = &listed.folder {
        out.write_all(&folder.device.to_le_bytes())?;
        out.write_all(&folder.bytes())?;
    }
    Ok(())
}

fn put_folder(out: &mut impl Write, root: Root, path: &str, is_folder: bool) -> io::Result<()> {
    out.write_all(&[b'D', root_byte(root)])?;
    text(out, path)?;
    out.write_all(&[u8::from(is_folder)])
}

/// Writes the files that were seen, in blocks.
fn put_files(out: &mut impl Write, questions: &mut Questions) -> io::Result<()> {
    let mut open: Option<(Root, String, u64)> = None;
    let mut entries = Vec::new();
    for file in questions.log.files()? {
        let file = file?;
        let Some(Seen(seen)) = file.seen else {
            continue;
        };
        if file.is_ambiguous {
            return Err(NO_NOTES.into());
        }
        let (root, folder, name) = file.place();
        let device = seen.map_or(0, |seen| seen.stamp.device);
        // Of what is absent no device is known: it goes with its folder's other files.
        let fits = open.as_ref().is_some_and(|(its_root, its_folder, its)| {
            (*its_root, its_folder.as_str()) == (root, folder) && (seen.is_none() || *its == device)
        });
        if !fits || entries.len() >= BLOCK {
            if let Some((root, folder, device)) = &open {
                close(out, (*root, folder, *device), &mut entries)?;
            }
            open = Some((root, folder.to_owned(), device));
        }
        put_entry(&mut entries, name, seen)?;
    }
    match &open {
        Some((root, folder, device)) => close(out, (*root, folder, *device), &mut entries),
        None => Ok(()),
    }
}

/// Writes a block of files of one folder: root, folder, device.
fn close(
    out: &mut impl Write,
    (root, folder, device): (Root, &str, u64),
    entries: &mut Vec<u8>,
) -> io::Result<()> {
    let mut names = FileEntries::of(device, entries).map(|(entry, _)| Some(entry?.name));
    let first = names.next().flatten().ok_or(NO_NOTES)?;
    let last = names.last().unwrap_or(Some(first)).ok_or(NO_NOTES)?;
    out.write_all(&[b'F', root_byte(root)])?;
    for name in [folder, first, last] {
        text(out, name)?;
    }
    out.write_all(&device.to_le_bytes())?;
    out.write_all(&length::<u32>(entries)?.to_le_bytes())?;
    out.write_all(entries)?;
    entries.clear();
    Ok(())
}

fn put_entry(out: &mut impl Write, name: &str, seen: Option<HashedFile>) -> io::Result<()> {
    let (known, bytes) = match seen {
        None => (ABSENT, None),
        Some(seen) if seen.settled => (BY_STAMP, Some(seen.stamp.bytes())),
        Some(seen) => (BY_CONTENT, Some(*seen.digest.bytes())),
    };
    out.write_all(&[known])?;
    text(out, name)?;
    out.write_all(bytes.as_ref().map_or(&[], |bytes| bytes))
}

fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(&length::<u16>(text.as_bytes())?.to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// Returns the length of bytes, in a number of the format.
fn length<N: TryFrom<usize>>(bytes: &[u8]) -> io::Result<N> {
    N::try_from(bytes.len()).map_err(|_| NO_NOTES.into())
}

fn root_byte(root: Root) -> u8 {
    match root {
        Root::Workspace => 0,
        Root::Project => 1,
    }
}
