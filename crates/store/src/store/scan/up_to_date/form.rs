//! The file format of `.milepost/glance` and `.milepost/glance-changes`: a head, the checksum of the notes that these ones change
//! (zeros: none), the results of the run, blocks of observations, and a checksum.
//!
//! Numbers are little-endian; a text follows its length (u16). A block starts with a letter:
//! `N` names in a folder of Milepost's own: path, digest;
//! `L` a pattern: root, pattern, digest of the names, 0 or 1 and the stamp of their folder;
//! `D` whether a folder exists: root, path, 0 or 1;
//! `F` files of one folder: root, folder, names of the first and the last file, device, bytes of the entries (u32), entries in the order
//! of the names;
//! `E` the end, and the SHA-256 of all bytes before it.
//! An entry is a code, a name, and with codes 1 and 2 32 bytes. The codes: 0 the file was absent; 1 its stamp proves its content: inode,
//! size, mtime, ctime; 2 its digest, so the file must be read; 3 changed notes do not count the file any more.

use super::observations::{FoundFile, ListedNames, PathParts, Questions, file_at, is_own};
use crate::store::read;
use crate::store::scan::stamp::FileStamp;
use crate::store::scan::statcache::HashedFile;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// What the file begins with.
const FORM: &[u8; 16] = b"milepost-glance4";

/// Where the file says which notes it changes.
pub(super) const BASE: std::ops::Range<usize> = 48..80;

/// Bytes read at once if most blocks are skipped.
pub(super) const SKIP_BUFFER: usize = 1 << 10;

/// A block of files holds at most so many bytes of entries, so that several threads share the work.
const BLOCK: usize = 32 << 10;

/// One block.
#[derive(Debug, Clone)]
pub(super) enum NotesBlock {
    Names {
        folder: String,
        digest: Digest,
    },
    List {
        root: Root,
        pattern: String,
        listed: ListedNames,
    },
    Folder {
        root: Root,
        path: String,
        is_folder: bool,
    },
    Files {
        root: Root,
        folder: String,
        device: u64,
        /// Where the entries stand in the file.
        at: u64,
        /// True if the block changes earlier notes.
        is_newer: bool,
        entries: Vec<u8>,
    },
    End,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownFile {
    /// It was not there.
    Absent,
    /// As long as it has this stamp, it has the content that it had.
    Stamp(FileStamp),
    /// It had this content.
    Content(Digest),
    /// It does not count any more.
    Forgotten,
}

/// An entry, as it was read.
#[derive(Debug)]
pub(super) struct FileEntry<'a> {
    pub(crate) name: &'a str,
    pub(crate) known: KnownFile,
    /// Where it begins, and where its 32 bytes do, among the entries of its block.
    pub(crate) spots: (usize, usize),
}

/// The byte of an entry whose stamp tells its content.
pub(super) const BY_STAMP: u8 = 1;

/// The byte of an entry of a file that does not count any more.
const FORGOTTEN: u8 = 3;

/// The bytes of the file; none when a name is too long. Of what earlier notes say, under the same key, all stays that is not
/// asked again and does not hold any more. `base` is the checksum of the notes that these ones change.
pub(super) fn write(
    questions: &Questions,
    before: Vec<NotesBlock>,
    base: Option<Digest>,
    key: Digest,
    told: &[u8],
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(1024 + questions.files.len() * 80);
    out.extend_from_slice(FORM);
    out.extend_from_slice(key.bytes());
    out.extend_from_slice(base.as_ref().map_or(&[0; 32], |base| base.bytes()));
    out.extend_from_slice(&u32::try_from(told.len()).ok()?.to_le_bytes());
    out.extend_from_slice(told);
    let sorted = questions.sorted()?;
    let gone = questions.gone();
    for block in before {
        carry(&mut out, block, questions, &sorted, &gone)?;
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
    let mut open: Option<(Root, &str, u64)> = None;
    let mut entries = Vec::new();
    for found in &sorted {
        let device = found.seen.map_or(0, |seen| seen.stamp.device);
        // Of what is absent no device is known: it goes with its folder's other files.
        let fits = open.is_some_and(|(root, folder, its_device)| {
            (root, folder) == (found.root, found.folder)
                && (found.seen.is_none() || its_device == device)
        });
        if !fits || entries.len() >= BLOCK {
            close(&mut out, open, &mut entries)?;
            open = Some((found.root, found.folder, device));
        }
        put_entry(&mut entries, found.name, found.seen)?;
    }
    close(&mut out, open, &mut entries)?;
    if base.is_some() {
        for (root, folder, name) in gone {
            let is_asked = |found: &FoundFile<'_>| found.place().cmp(&(root, folder, name));
            if sorted.binary_search_by(is_asked).is_err() {
                entries.push(FORGOTTEN);
                text(&mut entries, name)?;
                close(&mut out, Some((root, folder, 0)), &mut entries)?;
            }
        }
    }
    out.push(b'E');
    let seal = Digest::of(&out);
    out.extend_from_slice(seal.bytes());
    Some(out)
}

/// Writes a block of an earlier file again, without what is asked again and what does not hold any more.
fn carry(
    out: &mut Vec<u8>,
    block: NotesBlock,
    questions: &Questions,
    sorted: &[FoundFile<'_>],
    gone: &[PathParts<'_>],
) -> Option<()> {
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
                return Some(());
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
                return Some(());
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
                let place = (root, folder.as_str(), entry?.name);
                let is_void = root == Root::Workspace
                    && is_own(place.1, place.2)
                    && questions.kept.as_ref().is_some_and(|kept| {
                        let path = file_at(root, place.1, place.2);
                        path.is_none_or(|file| !kept.contains(file.path.as_str()))
                    });
                let asked_again = sorted.binary_search_by(|found| found.place().cmp(&place));
                if !is_void && asked_again.is_err() && gone.binary_search(&place).is_err() {
                    kept.extend_from_slice(bytes);
                }
            }
            if kept.is_empty() {
                return Some(());
            }
            close(out, Some((root, &folder, device)), &mut kept)
        }
        NotesBlock::Names { .. } | NotesBlock::End => Some(()),
    }
}

fn put_names(out: &mut Vec<u8>, folder: &str, digest: &Digest) -> Option<()> {
    out.push(b'N');
    text(out, folder)?;
    out.extend_from_slice(digest.bytes());
    Some(())
}

fn put_list(out: &mut Vec<u8>, root: Root, pattern: &str, listed: &ListedNames) -> Option<()> {
    out.push(b'L');
    out.push(root_byte(root));
    text(out, pattern)?;
    out.extend_from_slice(listed.digest.bytes());
    out.push(u8::from(listed.folder.is_some()));
    if let Some(folder) = &listed.folder {
        out.extend_from_slice(&folder.device.to_le_bytes());
        out.extend_from_slice(&stamp_bytes(folder));
    }
    Some(())
}

fn put_folder(out: &mut Vec<u8>, root: Root, path: &str, is_folder: bool) -> Option<()> {
    out.push(b'D');
    out.push(root_byte(root));
    text(out, path)?;
    out.push(u8::from(is_folder));
    Some(())
}

fn close(out: &mut Vec<u8>, open: Option<(Root, &str, u64)>, entries: &mut Vec<u8>) -> Option<()> {
    let Some((root, folder, device)) = open else {
        return Some(());
    };
    out.push(b'F');
    let mut names = FileEntries::of(device, entries).map(|(entry, _)| Some(entry?.name));
    let first = names.next()??;
    let last = names.last().unwrap_or(Some(first))?;
    out.push(root_byte(root));
    text(out, folder)?;
    text(out, first)?;
    text(out, last)?;
    out.extend_from_slice(&device.to_le_bytes());
    out.extend_from_slice(&u32::try_from(entries.len()).ok()?.to_le_bytes());
    out.append(entries);
    Some(())
}

fn put_entry(out: &mut Vec<u8>, name: &str, seen: Option<HashedFile>) -> Option<()> {
    let (known, bytes) = match seen {
        None => (0, None),
        Some(seen) if seen.settled => (BY_STAMP, Some(stamp_bytes(&seen.stamp))),
        Some(seen) => (2, Some(*seen.digest.bytes())),
    };
    out.push(known);
    text(out, name)?;
    out.extend_from_slice(bytes.as_ref().map_or(&[], |bytes| bytes));
    Some(())
}

/// Inode, size and times: what stands in an entry.
pub(super) fn stamp_bytes(stamp: &FileStamp) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&stamp.inode.to_le_bytes());
    bytes[8..16].copy_from_slice(&stamp.size.to_le_bytes());
    bytes[16..24].copy_from_slice(&stamp.mtime.to_le_bytes());
    bytes[24..].copy_from_slice(&stamp.ctime.to_le_bytes());
    bytes
}

fn text(out: &mut Vec<u8>, text: &str) -> Option<()> {
    out.extend_from_slice(&u16::try_from(text.len()).ok()?.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Some(())
}

fn root_byte(root: Root) -> u8 {
    match root {
        Root::Workspace => 0,
        Root::Project => 1,
    }
}

/// The blocks of the file that was written under this key and changes these notes; none when it is another, or damaged.
pub(super) fn read(
    path: &Path,
    key: Digest,
    base: Option<Digest>,
) -> Option<(Vec<NotesBlock>, Vec<u8>)> {
    let file = read::open(path).ok()?;
    let file = BufReader::with_capacity(1 << 16, file);
    let (mut reader, told) = NotesReader::begin(file, key, base).ok()??;
    let mut blocks = Vec::new();
    loop {
        match reader.block().ok()? {
            NotesBlock::End => return Some((blocks, told)),
            block => blocks.push(block),
        }
    }
}

/// The checksum at the end of a file, and its size.
pub(super) fn seal(path: &Path) -> Option<(Digest, u64)> {
    let file = read::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut seal = [0; 32];
    file.read_exact_at(&mut seal, size.checked_sub(32)?).ok()?;
    Some((Digest::from_bytes(seal), size))
}

/// The checksum of the notes that the notes in a file change.
pub(super) fn base(path: &Path) -> Option<Digest> {
    let file = read::open(path).ok()?;
    let mut base = [0; 32];
    file.read_exact_at(&mut base, BASE.start as u64).ok()?;
    Some(Digest::from_bytes(base))
}

/// Reads a file of a glance from its beginning, hashing as it goes.
pub(super) struct NotesReader<'a, R> {
    from: R,
    /// Bytes read.
    at: u64,
    /// Whether it changes earlier notes.
    is_newer: bool,
    hasher: milepost_core::base::digest::Hasher,
    /// Tells which files are skipped: root, folder, first and last name.
    skips: Option<Box<dyn Fn(Root, &str, [&str; 2]) -> bool + 'a>>,
}

impl<'a, R: Read + Seek> NotesReader<'a, R> {
    /// A reader of the file that was written under this key and changes these notes, with what was told; none when it is another or no
    /// file of ours.
    pub(super) fn begin(
        from: R,
        key: Digest,
        base: Option<Digest>,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        let mut reader = Self {
            from,
            at: 0,
            is_newer: base.is_some(),
            hasher: milepost_core::base::digest::Hasher::new(),
            skips: None,
        };
        let base = base.as_ref().map_or(&[0; 32], |base| base.bytes());
        if reader.bytes::<16>()? != *FORM
            || reader.bytes::<32>()? != *key.bytes()
            || reader.bytes::<32>()? != *base
        {
            return Ok(None);
        }
        let length = u32::from_le_bytes(reader.bytes()?) as usize;
        let told = reader.many(length)?;
        Ok(Some((reader, told)))
    }

    /// Skips blocks of files for which this is true: root, folder, first and last name. Then the seal is not checked.
    pub(super) fn skip(&mut self, skips: impl Fn(Root, &str, [&str; 2]) -> bool + 'a) {
        self.skips = Some(Box::new(skips));
    }

    /// The next block. After the last one, its seal is checked.
    pub(super) fn block(&mut self) -> io::Result<NotesBlock> {
        loop {
            if let Some(block) = self.block_or_skip()? {
                return Ok(block);
            }
        }
    }

    fn block_or_skip(&mut self) -> io::Result<Option<NotesBlock>> {
        Ok(Some(match self.bytes::<1>()? {
            [b'N'] => NotesBlock::Names {
                folder: self.text()?,
                digest: self.digest()?,
            },
            [b'L'] => NotesBlock::List {
                root: self.root()?,
                pattern: self.text()?,
                listed: ListedNames {
                    digest: self.digest()?,
                    folder: match self.bytes()? {
                        [0] => None,
                        _ => {
                            let device = self.number()?;
                            let rest = self.bytes::<32>()?;
                            Some(stamp_of(device, &rest).ok_or(io::ErrorKind::InvalidData)?)
                        }
                    },
                },
            },
            [b'D'] => NotesBlock::Folder {
                root: self.root()?,
                path: self.text()?,
                is_folder: self.bytes()? != [0],
            },
            [b'F'] => {
                let (root, folder) = (self.root()?, self.text()?);
                let (first, last) = (self.text()?, self.text()?);
                let device = self.number()?;
                let length = u32::from_le_bytes(self.bytes()?);
                let skips = self.skips.as_ref();
                if skips.is_some_and(|skips| skips(root, &folder, [&first, &last])) {
                    self.from.seek_relative(i64::from(length))?;
                    self.at += u64::from(length);
                    return Ok(None);
                }
                NotesBlock::Files {
                    root,
                    folder,
                    device,
                    at: self.at,
                    is_newer: self.is_newer,
                    entries: self.many(length as usize)?,
                }
            }
            [b'E'] if self.skips.is_some() => NotesBlock::End,
            [b'E'] => {
                let sealed = self.hasher.clone().finish();
                if self.bytes::<32>()? != *sealed.bytes() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                NotesBlock::End
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        self.at += N as u64;
        self.hash(&bytes);
        Ok(bytes)
    }

    fn many(&mut self, length: usize) -> io::Result<Vec<u8>> {
        // A damaged length must not ask for more memory than there is file.
        let mut bytes = Vec::new();
        let limit = u64::try_from(length).unwrap_or(u64::MAX);
        if self.from.by_ref().take(limit).read_to_end(&mut bytes)? != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += limit;
        self.hash(&bytes);
        Ok(bytes)
    }

    fn hash(&mut self, bytes: &[u8]) {
        if self.skips.is_none() {
            self.hasher.update(bytes);
        }
    }

    fn number(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn digest(&mut self) -> io::Result<Digest> {
        Ok(Digest::from_bytes(self.bytes()?))
    }

    fn root(&mut self) -> io::Result<Root> {
        match self.bytes()? {
            [0] => Ok(Root::Workspace),
            [1] => Ok(Root::Project),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn text(&mut self) -> io::Result<String> {
        let length = u16::from_le_bytes(self.bytes()?) as usize;
        String::from_utf8(self.many(length)?).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// The entries of a block of files, each with its bytes; none in the place of one that cannot be read, and then no more.
pub(super) struct FileEntries<'a> {
    device: u64,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FileEntries<'a> {
    pub(super) fn of(device: u64, bytes: &'a [u8]) -> Self {
        Self {
            device,
            bytes,
            at: 0,
        }
    }

    fn read(&self) -> Option<(FileEntry<'a>, usize)> {
        let rest = self.bytes.get(self.at..)?;
        let (&[known], rest) = rest.split_first_chunk::<1>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let begin = self.at + 3 + name.len();
        let (known, end) = match (known, rest.first_chunk::<32>()) {
            (0, _) => (KnownFile::Absent, begin),
            (FORGOTTEN, _) => (KnownFile::Forgotten, begin),
            (BY_STAMP, Some(bytes)) => {
                (KnownFile::Stamp(stamp_of(self.device, bytes)?), begin + 32)
            }
            (2, Some(bytes)) => (KnownFile::Content(Digest::from_bytes(*bytes)), begin + 32),
            _ => return None,
        };
        let entry = FileEntry {
            name: std::str::from_utf8(name).ok()?,
            known,
            spots: (self.at, begin),
        };
        Some((entry, end))
    }
}

impl<'a> Iterator for FileEntries<'a> {
    type Item = (Option<FileEntry<'a>>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let Some((entry, end)) = self.read() else {
            self.at = self.bytes.len();
            return Some((None, &[]));
        };
        let bytes = &self.bytes[self.at..end];
        self.at = end;
        Some((Some(entry), bytes))
    }
}

fn stamp_of(device: u64, bytes: &[u8; 32]) -> Option<FileStamp> {
    let number = |at: usize| -> Option<[u8; 8]> { bytes.get(at..at + 8)?.try_into().ok() };
    Some(FileStamp {
        device,
        inode: u64::from_le_bytes(number(0)?),
        size: u64::from_le_bytes(number(8)?),
        mtime: i64::from_le_bytes(number(16)?),
        ctime: i64::from_le_bytes(number(24)?),
    })
}
