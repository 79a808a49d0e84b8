//! Reads selected records of the journal, without parsing the others.

use super::JournalError;
use super::segments::{segments, shared};
use crate::store::disk::DiskError;
use crate::store::layout::Layout;
use crate::store::read;
use crate::store::search::TextSearch;
use memchr::{memchr, memrchr};
use milepost_core::base::in_order::in_order;
use milepost_core::model::event::Record;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

/// Bytes that are searched at once.
const PART: u64 = 4 << 20;

/// Bytes read at once of a line that continues after its part. Small in tests, so that a line needs several reads.
const REST: u64 = if cfg!(test) { 3 } else { 16 << 10 };

/// Passes every record whose line contains one of the texts to the caller, in order. The chain of digests is not checked, and a
/// line that is not a record is skipped: [`super::read_all`] reports both.
///
/// # Errors
/// Fails if a segment cannot be read.
pub fn read_with(
    layout: &Layout,
    texts: &[String],
    each: &mut dyn FnMut(Record),
) -> Result<(), JournalError> {
    let searched = TextSearch::new(texts);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let _shared = shared(layout);
    for file in segments(layout)? {
        let path = file.path(layout);
        let failed = DiskError::reading(&path);
        let file = read::open(&path).map_err(&failed)?;
        let size = file.metadata().map_err(&failed)?.len();
        let parts = size.div_ceil(PART);
        let search = |part: u64, bytes: &mut Vec<u8>| -> io::Result<Vec<Record>> {
            let lines = match lines(&file, (part * PART, PART, size), searched.as_ref(), bytes) {
                // A run cut a torn record off meanwhile.
                Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => Vec::new(),
                lines => lines?,
            };
            let records = lines.iter().map(|line| serde_json::from_slice(line));
            Ok(records.flatten().collect())
        };
        in_order(
            if parts > 1 { threads } else { 1 },
            &|| {
                let mut bytes = Vec::new();
                Box::new(move |part| search(part, &mut bytes))
            },
            |give| (0..parts).try_for_each(give),
            &mut |found: io::Result<Vec<Record>>| -> Result<(), JournalError> {
                found.map_err(&failed)?.into_iter().for_each(&mut *each);
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// Returns the lines that begin in a part of a segment, and contain one of the texts; without texts all lines. The part is given by
/// its begin and length; the segment has this size. `bytes` is the room that the part before took.
fn lines<'a>(
    file: &File,
    (from, length, size): (u64, u64, u64),
    texts: Option<&TextSearch>,
    bytes: &'a mut Vec<u8>,
) -> io::Result<Vec<&'a [u8]>> {
    let upto = (from + length).min(size);
    // A line begins after the end of the one before.
    let before = from.saturating_sub(1);
    bytes.resize((upto - before) as usize, 0);
    file.read_exact_at(bytes, before)?;
    let begin = match memchr(b'\n', bytes) {
        _ if from == 0 => 0,
        Some(end) => end + 1,
        None => return Ok(Vec::new()),
    };
    if begin == bytes.len() {
        return Ok(Vec::new());
    }
    // The last line may end in a later part.
    let mut at = upto;
    while at < size && bytes.last() != Some(&b'\n') {
        let known = bytes.len();
        bytes.resize(known + (size - at).min(REST) as usize, 0);
        file.read_exact_at(&mut bytes[known..], at)?;
        at += (bytes.len() - known) as u64;
        if let Some(end) = memchr(b'\n', &bytes[known..]) {
            bytes.truncate(known + end + 1);
        }
    }
    let mut found = Vec::new();
    let mut rest = &bytes[begin..];
    while !rest.is_empty() {
        let place = match texts {
            Some(texts) => texts.find(rest),
            None => Some(0),
        };
        let Some(place) = place else { break };
        let start = memrchr(b'\n', &rest[..place]).map_or(0, |end| end + 1);
        let end = memchr(b'\n', &rest[place..]).map_or(rest.len(), |end| place + end);
        found.push(&rest[start..end]);
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_every_length_have_every_line_once() {
        let words = [
            "",
            "a",
            "bb",
            "wanted",
            "c wanted",
            "wanted d",
            "eeeeeeeee",
            "f",
        ];
        let text: String = (0..60)
            .map(|n| format!("{n} {}\n", words[n * 7 % words.len()]))
            .collect();
        // A torn last line counts, too.
        for text in [text.clone(), format!("{text}wanted at the end")] {
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            let size = text.len() as u64;
            for wanted in [Some("wanted"), None] {
                let searched = wanted.map(|wanted| TextSearch::new([wanted]).unwrap());
                let expected: Vec<&str> = text
                    .lines()
                    .filter(|line| wanted.is_none_or(|wanted| line.contains(wanted)))
                    .collect();
                for length in 1..size + 2 {
                    let (mut found, mut bytes) = (Vec::new(), Vec::new());
                    for part in 0..size.div_ceil(length) {
                        let part = (part * length, length, size);
                        for line in lines(&file, part, searched.as_ref(), &mut bytes).unwrap() {
                            found.push(String::from_utf8(line.to_vec()).unwrap());
                        }
                    }
                    assert_eq!(found, expected, "parts of {length}");
                }
            }
        }
    }
}
