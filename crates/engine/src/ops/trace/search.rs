//! Searches files for the bytes of a key, without parsing them.
//!
//! Files are read in blocks on several threads. The search starts where the key is expected: most stages keep the order of elements,
//! so a key is at about the same part of each file.

use memchr::memmem::Finder;
use milepost_core::base::in_order::in_order;
use milepost_store::store::read;
use serde_json::Value;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::thread;

/// The bytes that a thread reads at once.
const BLOCK: u64 = 512 << 10;

/// The bytes that one thread reads as fast as several.
const ALONE: u64 = 8 << 20;

const THREADS: usize = 8;

/// A file to search.
pub(super) struct Haystack {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The size in bytes.
    pub(super) size: u64,
}

/// The bytes that a key may be written as.
pub(super) struct Spellings(Vec<Vec<u8>>);

impl Spellings {
    /// Returns the spellings of a key in a document: in quotes as JSON has them, or without quotes if it can be a number, a
    /// boolean or the cell of a table.
    pub(super) fn in_document(key: &str, is_json: bool) -> Self {
        let quoted = Value::from(key).to_string();
        let bare = quoted[1..quoted.len() - 1].to_owned();
        // Some programs write every character that is not ASCII as an escape.
        let escaped = ascii(&bare);
        let value = serde_json::from_str::<Value>(key);
        let is_bare = value.is_ok_and(|value| value.is_number() || value.is_boolean());
        let mut all: Vec<Vec<u8>> = if is_json && !is_bare {
            vec![quoted.into_bytes(), format!("\"{escaped}\"").into_bytes()]
        } else {
            vec![
                key.as_bytes().to_vec(),
                bare.into_bytes(),
                escaped.into_bytes(),
            ]
        };
        all.dedup();
        Self(all)
    }

    /// Returns the spelling of a text that is searched as it is.
    pub(super) fn plain(text: &str) -> Self {
        Self(vec![text.as_bytes().to_vec()])
    }

    fn longest(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns true if a text has one of them.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        self.0
            .iter()
            .any(|needle| memchr::memmem::find(text, needle).is_some())
    }
}

/// Returns a text with every character that is not ASCII as an escape of JSON.
fn ascii(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_ascii() {
            escaped.push(char);
        } else {
            let mut units = [0; 2];
            for unit in char.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

/// Why a search stops.
enum Stop<T> {
    Found(T),
    Failed(io::Error),
}

/// A block of one of the files.
#[derive(Clone, Copy)]
struct Block {
    file: usize,
    offset: u64,
    length: u64,
}

/// Passes the places of a key (file and offset) to `take` until it returns a result, beginning at the part `around` (0 to 1) of all
/// files together.
///
/// # Errors
/// When a file cannot be read, and errors of `take`.
pub(super) fn search<T>(
    files: &[Haystack],
    key: &Spellings,
    around: f64,
    take: &mut dyn FnMut(usize, u64) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let overlap = key.longest().saturating_sub(1) as u64;
    let mut blocks = Vec::new();
    let mut before = 0_u64;
    let total: u64 = files.iter().map(|file| file.size).sum();
    let expected = (total as f64 * around.clamp(0.0, 1.0)) as u64;
    for (file, haystack) in files.iter().enumerate() {
        let mut offset = 0;
        while offset < haystack.size {
            let length = (haystack.size - offset).min(BLOCK + overlap);
            let middle = before + offset + BLOCK.min(length) / 2;
            let block = Block {
                file,
                offset,
                length,
            };
            blocks.push((middle.abs_diff(expected), block));
            offset += BLOCK;
        }
        before += haystack.size;
    }
    blocks.sort_by_key(|(distance, block)| (*distance, block.file, block.offset));
    #[expect(clippy::type_complexity)]
    let make_work = || -> Box<dyn FnMut(Block) -> io::Result<Vec<(usize, u64)>> + '_> {
        let finders: Vec<Finder<'_>> = key.0.iter().map(Finder::new).collect();
        let mut buffer = Vec::new();
        Box::new(move |block: Block| {
            read_block(&files[block.file], block, &mut buffer)?;
            let mut places: Vec<(usize, u64)> = finders
                .iter()
                .flat_map(|finder| finder.find_iter(&buffer))
                .map(|place| place as u64)
                // A match that begins in the overlap is found again in the next block.
                .filter(|place| *place < BLOCK)
                .map(|place| (block.file, block.offset + place))
                .collect();
            places.sort_unstable();
            places.dedup();
            Ok(places)
        })
    };
    let done = in_order(
        threads(total),
        &make_work,
        |each| blocks.iter().try_for_each(|(_, block)| each(*block)),
        &mut |places: io::Result<Vec<(usize, u64)>>| {
            for (file, offset) in places.map_err(Stop::Failed)? {
                if let Some(found) = take(file, offset).map_err(Stop::Failed)? {
                    return Err(Stop::Found(found));
                }
            }
            Ok(())
        },
    );
    match done {
        Ok(()) => Ok(None),
        Err(Stop::Found(found)) => Ok(Some(found)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Returns the number of the line that has an offset, from 1.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn line_of(file: &Haystack, offset: u64) -> io::Result<u64> {
    let make_work = || -> Box<dyn FnMut(Block) -> io::Result<u64> + '_> {
        let mut buffer = Vec::new();
        Box::new(move |block: Block| {
            read_block(file, block, &mut buffer)?;
            Ok(memchr::memchr_iter(b'\n', &buffer).count() as u64)
        })
    };
    let mut line = 1;
    in_order(
        threads(offset),
        &make_work,
        |each| {
            let mut at = 0;
            while at < offset {
                let length = (offset - at).min(BLOCK);
                each(Block {
                    file: 0,
                    offset: at,
                    length,
                })?;
                at += length;
            }
            Ok(())
        },
        &mut |count: io::Result<u64>| {
            line += count?;
            Ok(())
        },
    )
    .map(|()| line)
}

/// Reads the bytes around an offset: from the last line end before it to the next after it, at most `most` bytes on each side. Returns
/// them with the offset of the first.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn line_around(file: &Haystack, offset: u64, most: u64) -> io::Result<(u64, Vec<u8>)> {
    let open = read::open(&file.path)?;
    let mut side = 1_u64 << 13;
    loop {
        side = side.min(most);
        let start = offset.saturating_sub(side);
        let end = (offset + side).min(file.size);
        let mut bytes = vec![0; end.saturating_sub(start) as usize];
        open.read_exact_at(&mut bytes, start)?;
        let here = (offset - start) as usize;
        let first = memchr::memrchr(b'\n', &bytes[..here]);
        let last = memchr::memchr(b'\n', &bytes[here..]);
        let is_whole = (first.is_some() || start == 0) && (last.is_some() || end == file.size);
        if is_whole || side == most {
            let from = first.map_or(0, |place| place + 1);
            let upto = last.map_or(bytes.len(), |place| here + place);
            return Ok((start + from as u64, bytes[from..upto].to_vec()));
        }
        side *= 16;
    }
}

fn read_block(file: &Haystack, block: Block, buffer: &mut Vec<u8>) -> io::Result<()> {
    let open = read::open(&file.path)?;
    buffer.resize(block.length as usize, 0);
    open.read_exact_at(buffer, block.offset)
}

/// Returns the number of threads for a search in this many bytes.
fn threads(size: u64) -> usize {
    if size <= ALONE {
        return 1;
    }
    thread::available_parallelism().map_or(1, |count| count.get().min(THREADS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn haystack(text: &[u8]) -> (tempfile::TempDir, Haystack) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let size = text.len() as u64;
        (folder, Haystack { path, size })
    }

    #[test]
    fn a_key_across_two_blocks_is_found_once_from_any_start() {
        let mut text = vec![b'\n'; (3 * BLOCK) as usize];
        let place = BLOCK - 3;
        text[place as usize..place as usize + 6].copy_from_slice(b"needle");
        let (_folder, file) = haystack(&text);
        for around in [0.0, 0.5, 1.0, 7.0] {
            let mut seen = Vec::new();
            let key = Spellings::plain("needle");
            let files = std::slice::from_ref(&file);
            let found: Option<()> = search(files, &key, around, &mut |_, offset| {
                seen.push(offset);
                Ok(None)
            })
            .unwrap();
            assert_eq!((found, seen), (None, vec![place]));
        }
        assert_eq!(line_of(&file, place).unwrap(), place + 1);
    }

    #[test]
    fn a_key_is_found_as_documents_write_it() {
        let found =
            |key: &str, text: &str| Spellings::in_document(key, true).is_in(text.as_bytes());
        assert!(found("a\"b", r#"{"k":"a\"b"}"#));
        assert!(found("é", r#"{"k":"é"}"#));
        assert!(found("é😀", r#"{"k":"\u00e9\ud83d\ude00"}"#));
        assert!(found("12", r#"{"k":12}"#));
        assert!(!found("ab", r#"{"k":"cab"}"#));
    }

    #[test]
    fn a_line_is_returned_with_its_offset() {
        let long = "y".repeat(40_000);
        let (_folder, file) = haystack(format!("a\n{long}x{long}\nb").as_bytes());
        let (start, line) = line_around(&file, 40_002, 1 << 20).unwrap();
        assert_eq!((start, line.len()), (2, 80_001));
        let (start, line) = line_around(&file, 40_002, 10).unwrap();
        assert_eq!((start, line.len()), (39_992, 20));
        assert_eq!(line_around(&file, 0, 10).unwrap(), (0, b"a".to_vec()));
        let end = line_around(&file, file.size - 1, 10).unwrap();
        assert_eq!(end, (file.size - 1, b"b".to_vec()));
    }
}
