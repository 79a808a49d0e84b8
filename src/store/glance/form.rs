//! The file of a glance: a head, what was told, blocks of questions, and a seal over all that.
//!
//! Numbers are little-endian; texts stand behind their length (u16). A block begins with a letter:
//! `N` names in a folder of Milepost's own: path, digest;
//! `L` a pattern: root, pattern, digest of the names, 0 or 1 and the stamp of their folder;
//! `D` whether a folder lies there: root, path, 0 or 1;
//! `F` files of one folder: root, folder, device, bytes of the entries (u32), entries;
//! `E` the end, and the SHA-256 of all bytes before it.
//! An entry: 0 absent or 1 there, name, and of what is there inode, size, mtime, ctime.

use super::asked::{Found, Listed, Questions};
use crate::base::digest::Digest;
use crate::base::path::Root;
use crate::store::stamp::Stamp;
use crate::store::statcache::Seen;
use std::io::{self, Read};

/// What the file begins with.
const FORM: &[u8; 16] = b"milepost-glance1";

/// A block of files holds at most so many bytes of entries, so that several threads share the work.
const BLOCK: usize = 32 << 10;

/// One block.
#[derive(Debug)]
pub(super) enum Block {
    Names {
        folder: String,
        digest: Digest,
    },
    List {
        root: Root,
        pattern: String,
        listed: Listed,
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
        entries: Vec<u8>,
    },
    End,
}

/// The bytes of the file; none when the stamp of a file does not tell its content yet, or a name is too long.
pub(super) fn write(questions: &Questions, key: Digest, told: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(1024 + questions.files.len() * 80);
    out.extend_from_slice(FORM);
    out.extend_from_slice(key.bytes());
    out.extend_from_slice(&u32::try_from(told.len()).ok()?.to_le_bytes());
    out.extend_from_slice(told);
    for (folder, digest) in &questions.names {
        out.push(b'N');
        text(&mut out, folder)?;
        out.extend_from_slice(digest.bytes());
    }
    for ((root, pattern), listed) in &questions.lists {
        out.push(b'L');
        out.push(root_byte(*root));
        text(&mut out, pattern)?;
        out.extend_from_slice(listed.digest.bytes());
        out.push(u8::from(listed.folder.is_some()));
        if let Some(folder) = &listed.folder {
            out.extend_from_slice(&folder.device.to_le_bytes());
            stamp(&mut out, folder);
        }
    }
    for ((root, path), is_folder) in &questions.folders {
        out.push(b'D');
        out.push(root_byte(*root));
        text(&mut out, path)?;
        out.push(u8::from(*is_folder));
    }
    let mut open: Option<(Root, &str, u64)> = None;
    let mut entries = Vec::new();
    for found in questions.sorted()? {
        let Found {
            root,
            folder,
            name,
            seen,
        } = found;
        let device = seen.map_or(0, |seen| seen.stamp.device);
        // Of what is absent no device is known: it goes with its folder's other files.
        let fits = open.is_some_and(|(its_root, its_folder, its_device)| {
            (its_root, its_folder) == (root, folder) && (seen.is_none() || its_device == device)
        });
        if !fits || entries.len() >= BLOCK {
            close(&mut out, open, &mut entries)?;
            open = Some((root, folder, device));
        }
        entry(&mut entries, name, seen)?;
    }
    close(&mut out, open, &mut entries)?;
    out.push(b'E');
    let seal = Digest::of(&out);
    out.extend_from_slice(seal.bytes());
    Some(out)
}

fn close(out: &mut Vec<u8>, open: Option<(Root, &str, u64)>, entries: &mut Vec<u8>) -> Option<()> {
    let Some((root, folder, device)) = open else {
        return Some(());
    };
    out.push(b'F');
    out.push(root_byte(root));
    text(out, folder)?;
    out.extend_from_slice(&device.to_le_bytes());
    out.extend_from_slice(&u32::try_from(entries.len()).ok()?.to_le_bytes());
    out.append(entries);
    Some(())
}

fn entry(out: &mut Vec<u8>, name: &str, seen: Option<Seen>) -> Option<()> {
    out.push(u8::from(seen.is_some()));
    text(out, name)?;
    if let Some(seen) = seen {
        if !seen.settled {
            return None;
        }
        stamp(out, &seen.stamp);
    }
    Some(())
}

fn stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    for number in [stamp.inode, stamp.size] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for time in [stamp.mtime, stamp.ctime] {
        out.extend_from_slice(&time.to_le_bytes());
    }
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

/// Reads a file of a glance from its beginning, hashing as it goes.
pub(super) struct Reader<R> {
    from: R,
    hasher: crate::base::digest::Hasher,
}

impl<R: Read> Reader<R> {
    /// A reader of the file that was written under this key, with what was told; none when it is another or no file of ours.
    pub(super) fn begin(from: R, key: Digest) -> io::Result<Option<(Self, Vec<u8>)>> {
        let mut reader = Self {
            from,
            hasher: crate::base::digest::Hasher::new(),
        };
        if reader.bytes::<16>()? != *FORM || reader.bytes::<32>()? != *key.bytes() {
            return Ok(None);
        }
        let length = u32::from_le_bytes(reader.bytes()?) as usize;
        let told = reader.many(length)?;
        Ok(Some((reader, told)))
    }

    /// The next block. After the last one, its seal is checked.
    pub(super) fn block(&mut self) -> io::Result<Block> {
        Ok(match self.bytes::<1>()? {
            [b'N'] => Block::Names {
                folder: self.text()?,
                digest: self.digest()?,
            },
            [b'L'] => Block::List {
                root: self.root()?,
                pattern: self.text()?,
                listed: Listed {
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
            [b'D'] => Block::Folder {
                root: self.root()?,
                path: self.text()?,
                is_folder: self.bytes()? != [0],
            },
            [b'F'] => Block::Files {
                root: self.root()?,
                folder: self.text()?,
                device: self.number()?,
                entries: {
                    let length = u32::from_le_bytes(self.bytes()?) as usize;
                    self.many(length)?
                },
            },
            [b'E'] => {
                let sealed = self.hasher.clone().finish();
                if self.bytes::<32>()? != *sealed.bytes() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Block::End
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        self.hasher.update(bytes);
        Ok(bytes)
    }

    fn many(&mut self, length: usize) -> io::Result<Vec<u8>> {
        // A damaged length must not ask for more memory than there is file.
        let mut bytes = Vec::new();
        let limit = u64::try_from(length).unwrap_or(u64::MAX);
        if self.from.by_ref().take(limit).read_to_end(&mut bytes)? != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.hasher.update(&bytes);
        Ok(bytes)
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

/// The next entry of a block of files, taken off its front; none when there is none that can be read.
pub(super) fn next_entry<'a>(
    device: u64,
    entries: &mut &'a [u8],
) -> Option<(&'a str, Option<Stamp>)> {
    let (&[there], rest) = entries.split_first_chunk::<1>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (name, mut rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let mut known = None;
    if there != 0 {
        let (stamp, after) = rest.split_first_chunk::<32>()?;
        rest = after;
        known = Some(stamp_of(device, stamp)?);
    }
    *entries = rest;
    Some((std::str::from_utf8(name).ok()?, known))
}

fn stamp_of(device: u64, bytes: &[u8; 32]) -> Option<Stamp> {
    let number = |at: usize| -> Option<[u8; 8]> { bytes.get(at..at + 8)?.try_into().ok() };
    Some(Stamp {
        device,
        inode: u64::from_le_bytes(number(0)?),
        size: u64::from_le_bytes(number(8)?),
        mtime: i64::from_le_bytes(number(16)?),
        ctime: i64::from_le_bytes(number(24)?),
    })
}
