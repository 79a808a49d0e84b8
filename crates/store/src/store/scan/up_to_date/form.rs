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

use super::observations::ListedNames;
use crate::store::read;
use crate::store::scan::stamp::FileStamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The first bytes of the file.
pub(super) const FORM: &[u8; 16] = b"milepost-glance4";

/// Where the file says which notes it changes.
pub(super) const BASE: std::ops::Range<usize> = 48..80;

/// Bytes read at once if most blocks are skipped.
pub(super) const SKIP_BUFFER: usize = 1 << 10;

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
        /// The offset of the entries in the file.
        at: u64,
        /// True if the block changes earlier notes.
        is_newer: bool,
        entries: Vec<u8>,
    },
    End,
}

/// The recorded state of a file.
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

/// The byte of an entry of a file that was not there.
pub(super) const ABSENT: u8 = 0;

/// The byte of an entry whose stamp tells its content.
pub(super) const BY_STAMP: u8 = 1;

/// The byte of an entry with the digest.
pub(super) const BY_CONTENT: u8 = 2;

/// The byte of an entry of a file that does not count any more.
pub(super) const FORGOTTEN: u8 = 3;

/// Returns the blocks of the file that was written under this key and changes these notes; none when it is another, or damaged.
pub(super) fn read(
    path: &Path,
    key: Digest,
    base: Option<Digest>,
) -> Option<(Vec<NotesBlock>, Vec<u8>)> {
    let (reader, payload) = open(path, key, base)?;
    let blocks: io::Result<Vec<NotesBlock>> = reader.blocks().collect();
    Some((blocks.ok()?, payload))
}

/// Opens the file that was written under this key and changes these notes, with the stored data; `None` for another file.
pub(super) fn open(
    path: &Path,
    key: Digest,
    base: Option<Digest>,
) -> Option<(NotesReader<'static, BufReader<File>>, Vec<u8>)> {
    let file = BufReader::with_capacity(1 << 16, read::open(path).ok()?);
    NotesReader::begin(file, key, base).ok()?
}

/// Returns the checksum at the end of a file, and its size.
pub(super) fn seal(path: &Path) -> Option<(Digest, u64)> {
    let file = read::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut seal = [0; 32];
    file.read_exact_at(&mut seal, size.checked_sub(32)?).ok()?;
    Some((Digest::from_bytes(seal), size))
}

/// Returns the checksum of the notes that the notes in a file change.
pub(super) fn base(path: &Path) -> Option<Digest> {
    let file = read::open(path).ok()?;
    let mut base = [0; 32];
    file.read_exact_at(&mut base, BASE.start as u64).ok()?;
    Some(Digest::from_bytes(base))
}

/// Reads a file of notes from its beginning, hashing as it goes.
pub(super) struct NotesReader<'a, R> {
    from: R,
    /// Bytes read.
    at: u64,
    /// Whether it changes earlier notes.
    is_newer: bool,
    hasher: milepost_core::base::digest::Hasher,
    /// Tells which files are skipped: root, folder, first and last name.
    #[expect(clippy::type_complexity)]
    skips: Option<Box<dyn Fn(Root, &str, [&str; 2]) -> bool + 'a>>,
}

impl<'a, R: Read + Seek> NotesReader<'a, R> {
    /// Opens the file that was written under this key and changes these notes, with the stored data; `None` for another file, or
    /// one in another format.
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
        let payload = reader.many(length)?;
        Ok(Some((reader, payload)))
    }

    /// Skips blocks of files for which this is true: root, folder, first and last name. Then the seal is not checked.
    pub(super) fn skip(&mut self, skips: impl Fn(Root, &str, [&str; 2]) -> bool + 'a) {
        self.skips = Some(Box::new(skips));
    }

    /// Returns the next block. After the last one, its seal is checked.
    pub(super) fn block(&mut self) -> io::Result<NotesBlock> {
        loop {
            if let Some(block) = self.block_or_skip()? {
                return Ok(block);
            }
        }
    }

    /// Returns all blocks. After the last one, the seal is checked.
    pub(super) fn blocks(mut self) -> impl Iterator<Item = io::Result<NotesBlock>> {
        std::iter::from_fn(move || match self.block() {
            Ok(NotesBlock::End) => None,
            block => Some(block),
        })
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
                            Some(FileStamp::of_bytes(device, &self.bytes()?))
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
            (ABSENT, _) => (KnownFile::Absent, begin),
            (FORGOTTEN, _) => (KnownFile::Forgotten, begin),
            (BY_STAMP, Some(bytes)) => (
                KnownFile::Stamp(FileStamp::of_bytes(self.device, bytes)),
                begin + 32,
            ),
            (BY_CONTENT, Some(bytes)) => {
                (KnownFile::Content(Digest::from_bytes(*bytes)), begin + 32)
            }
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
