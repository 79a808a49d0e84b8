//! Reads the journal and checks the chain of its digests. Nothing is changed.

use super::segments::{SegmentFile, segments, shared};
use super::{JournalError, Position};
use crate::store::disk::DiskError;
use crate::store::layout::Layout;
use crate::store::read;
use memchr::memmem;
use milepost_core::base::digest::Digest;
use milepost_core::model::event::{Event, Record};
use serde::Deserialize;
use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The position of a line in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPlace {
    /// The segment.
    pub(crate) path: PathBuf,
    /// The number of the segment, from 1.
    pub segment: u64,
    /// The number of the line in the segment, from 1.
    pub line: u64,
    /// The offset of the line in the segment, in bytes.
    pub offset: u64,
}

impl JournalPlace {
    fn start_of(layout: &Layout, file: SegmentFile) -> Self {
        Self {
            path: file.path(layout),
            segment: file.first,
            line: 1,
            offset: 0,
        }
    }

    /// Returns the position before the line.
    pub fn position(&self) -> Position {
        Position {
            segment: self.segment,
            offset: self.offset,
        }
    }
}

impl fmt::Display for JournalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, line, offset) = (self.path.display(), self.line, self.offset);
        write!(f, "{path}, line {line} (byte {offset})")
    }
}

/// The end of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// The number of the last segment; 0 if there is no journal.
    pub segment: u64,
    /// The number of complete lines in the last segment.
    pub lines: u64,
    /// The size of these lines in bytes.
    pub size: u64,
    /// The number of bytes after them: a line that is being written or that a killed run was writing, or lines that a power failure
    /// replaced partly by zeros.
    pub torn: u64,
    /// The digest of the last line.
    pub last: Option<Digest>,
}

impl Tail {
    /// Returns the place after the last complete line.
    pub fn end(&self) -> Position {
        Position {
            segment: self.segment.max(1),
            offset: self.size,
        }
    }
}

/// Reads the records since the last seal, which the manifests do not contain yet, with the seal itself. Also checks that it follows
/// the line before. A torn tail is skipped.
pub fn read_since_seal(layout: &Layout) -> Result<(Vec<Record>, Tail), JournalError> {
    let mut records = Vec::new();
    let Some(&last) = segments(layout)?.last() else {
        return Ok((records, Tail::default()));
    };
    let (start, prev) = last_seal(layout, last)?;
    let tail = scan((last, start), true, prev, &mut |_, record| {
        records.push(record);
    })?;
    Ok((records, tail))
}

/// Returns the place of the last seal in a segment, or of its first line, and the digest of the line before.
fn last_seal(
    layout: &Layout,
    segments: SegmentFile,
) -> Result<(JournalPlace, Option<Digest>), JournalError> {
    let mut place = JournalPlace::start_of(layout, segments);
    let fail = DiskError::reading(&place.path);
    let file = read::open(&place.path).map_err(&fail)?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let mut found = (place.clone(), None);
    let (mut line, mut before) = (Vec::new(), Vec::new());
    loop {
        std::mem::swap(&mut line, &mut before);
        line.clear();
        let size = lines.read_until(b'\n', &mut line);
        let size = size.map_err(&fail)? as u64;
        if size == 0 {
            break;
        }
        if place.line > 1 && is_seal(&line) {
            found = (place.clone(), before.strip_suffix(b"\n").map(Digest::of));
        }
        place.line += 1;
        place.offset += size;
    }
    if found.0.line == 1 && segments.first > 1 {
        let path = layout.segment(segments.first - 1);
        found.1 = last_line(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => JournalError::Missing { path: path.clone() },
            _ => DiskError::new("read", &path, source).into(),
        })?;
    }
    Ok(found)
}

/// Returns true if a whole line is a seal.
fn is_seal(line: &[u8]) -> bool {
    // No text in JSON contains these bytes, because its quotes are escaped.
    memmem::find(line, br#""kind":"sealed""#).is_some()
        && line.strip_suffix(b"\n").is_some_and(|text| {
            record(text).is_ok_and(|record| matches!(record.event, Event::Sealed { .. }))
        })
}

/// Returns the place of the last seal; `None` if there is no journal.
///
/// # Errors
/// If a segment cannot be read, or the one before is missing.
pub fn sealed_at(layout: &Layout) -> Result<Option<Position>, JournalError> {
    let last = segments(layout)?.pop();
    let found = last
        .map(|segments| last_seal(layout, segments))
        .transpose()?;
    Ok(found.map(|(place, _)| place.position()))
}

/// The bytes of a segment that are searched for its latest records.
const LATEST_BYTES: u64 = 1 << 20;

/// Returns the latest records over all segments, oldest first, without checking their chain. Of each segment, only the end is read, so
/// there may be fewer than `most`. A line that cannot be read is skipped.
pub fn latest(layout: &Layout, most: usize) -> Result<Vec<Record>, JournalError> {
    let mut latest = VecDeque::new();
    let _shared = shared(layout);
    for file in segments(layout)?.into_iter().rev() {
        let path = file.path(layout);
        let end = end_of(&path, LATEST_BYTES);
        let end = end.map_err(DiskError::reading(&path))?;
        for line in end.split(|byte| *byte == b'\n').rev() {
            if latest.len() == most {
                return Ok(latest.into());
            }
            if let Ok(record) = serde_json::from_slice(line) {
                latest.push_front(record);
            }
        }
    }
    Ok(latest.into())
}

/// Returns the last bytes of a file.
fn end_of(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut file = read::open(path)?;
    let start = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Passes every record to the caller in order, and checks the chain through all segments. Records before a break are passed too.
pub fn read_all(
    layout: &Layout,
    each: &mut dyn FnMut(&JournalPlace, Record),
) -> Result<Tail, JournalError> {
    let _shared = shared(layout);
    let files = segments(layout)?;
    let (mut tail, mut expected) = (Tail::default(), 1);
    for &file in &files {
        if file.first != expected {
            let path = layout.segment(expected);
            return Err(JournalError::Missing { path });
        }
        let is_last = files.last() == Some(&file);
        let start = JournalPlace::start_of(layout, file);
        tail = scan((file, start), is_last, tail.last, each)?;
        expected = file.last + 1;
    }
    Ok(tail)
}

/// Reads a segment from a place whose record must follow `prev`.
fn scan(
    (segments, mut place): (SegmentFile, JournalPlace),
    is_last: bool,
    prev: Option<Digest>,
    each: &mut dyn FnMut(&JournalPlace, Record),
) -> Result<Tail, JournalError> {
    let fail = DiskError::reading(&place.path);
    let mut file = read::open(&place.path).map_err(&fail)?;
    file.seek(SeekFrom::Start(place.offset)).map_err(&fail)?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let mut last = prev;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(&fail)? as u64;
        if read == 0 {
            break;
        }
        let read_record = match line.strip_suffix(b"\n") {
            Some(text) => record(text).map(|record| (Digest::of(text), record)),
            None => Err(Unread::NoRecord("the line is cut off".to_owned())),
        };
        let (digest, record) = match read_record {
            Ok(found) => found,
            Err(Unread::Newer(kind)) => return Err(JournalError::Newer { place, kind }),
            Err(Unread::NoRecord(problem)) => {
                // A kill tears the last line only; of a whole segment none is torn.
                if is_last && lines.fill_buf().map_err(&fail)?.is_empty() {
                    return tail(segments, &place, read, last, prev);
                }
                if is_last && line.contains(&0) {
                    let mut rest = Vec::new();
                    lines.read_to_end(&mut rest).map_err(&fail)?;
                    if may_be_unflushed(&rest) {
                        let torn = read + rest.len() as u64;
                        return tail(segments, &place, torn, last, prev);
                    }
                }
                return Err(JournalError::Broken { place, problem });
            }
        };
        if let Some(problem) = misfit(&record, segments, place.line, last.as_ref()) {
            return Err(JournalError::Broken { place, problem });
        }
        each(&place, record);
        last = Some(digest);
        place.line += 1;
        place.offset += read;
    }
    tail(segments, &place, 0, last, prev)
}

/// Returns true if the lines after zeros may never have been flushed. A power failure keeps some unflushed lines, in any order, and
/// leaves zeros for the rest. The lines that a run wrote since its last flush contain one barrier at most; all other lines were
/// flushed, so zeros before them are damage. Everything before a seal was flushed.
fn may_be_unflushed(after: &[u8]) -> bool {
    let lines = after.split(|byte| *byte == b'\n');
    let whole: Vec<Record> = lines.filter_map(|line| record(line).ok()).collect();
    let barriers = whole
        .iter()
        .filter(|record| matches!(record.event, Event::Barrier));
    let same_run = whole
        .windows(2)
        .all(|pair| pair[0].run_id == pair[1].run_id);
    let is_sealed = whole
        .iter()
        .any(|record| matches!(record.event, Event::Sealed { .. }));
    same_run && !is_sealed && barriers.count() <= 1
}

/// Returns the end of a segment, the place of the next line. A later segment is complete once it has its first record.
fn tail(
    file: SegmentFile,
    place: &JournalPlace,
    torn: u64,
    last: Option<Digest>,
    prev: Option<Digest>,
) -> Result<Tail, JournalError> {
    if file.first > 1 && place.line == 1 {
        return Err(JournalError::Broken {
            place: place.clone(),
            problem: "the segment does not begin with a whole record".to_owned(),
        });
    }
    Ok(Tail {
        segment: file.last,
        lines: place.line - 1,
        size: place.offset,
        torn,
        last: last.or(prev),
    })
}

/// Returns the reason why a record does not fit into its place; `None` if it does.
pub(super) fn misfit(
    record: &Record,
    file: SegmentFile,
    line: u64,
    last: Option<&Digest>,
) -> Option<String> {
    if record.prev.as_ref() != last {
        let show = |digest: Option<&Digest>| digest.map_or("nothing".to_owned(), Digest::short);
        return Some(format!(
            "the record follows {}, but the record before is {}: a line was changed, added or removed",
            show(record.prev.as_ref()),
            show(last)
        ));
    }
    match &record.event {
        Event::Sealed { segment: of, .. } if !file.seals(*of, line == 1) => {
            Some("a record that seals a segment stands in another place".to_owned())
        }
        Event::Sealed { .. } => None,
        _ if file.first > 1 && line == 1 => {
            Some("the segment does not begin with the record that seals the one before".to_owned())
        }
        _ => None,
    }
}

/// Why a line is not a record.
pub(super) enum Unread {
    NoRecord(String),
    Newer(String),
}

pub(super) fn record(text: &[u8]) -> Result<Record, Unread> {
    serde_json::from_slice(text).map_err(|problem| match unknown_kind(text) {
        Some(kind) => Unread::Newer(kind),
        None => Unread::NoRecord(format!("not a record of Milepost: {problem}")),
    })
}

/// Returns the kind of a line that is whole JSON with a kind that no event has.
fn unknown_kind(text: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct RecordKind {
        kind: String,
    }
    let RecordKind { kind } = serde_json::from_slice(text).ok()?;
    let alone = serde_json::from_value::<Event>(serde_json::json!({ "kind": kind }));
    let unknown = alone.is_err_and(|error| error.to_string().starts_with("unknown variant"));
    unknown.then_some(kind)
}

/// Returns the digest of the last line of a whole segment, read from its end.
fn last_line(path: &Path) -> std::io::Result<Option<Digest>> {
    let size = read::open(path)?.metadata()?.len();
    let line = line_before(path, size)?;
    Ok(line.map(|line| Digest::of(line.strip_suffix(b"\n").unwrap_or(&line))))
}

/// Returns the line that ends at an offset, with its line break if it has one; `None` if nothing but a line break is before the offset.
///
/// # Errors
/// `UnexpectedEof` if the file is shorter.
pub(super) fn line_before(path: &Path, end: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut file = read::open(path)?;
    let mut chunk = 1_u64 << 16;
    loop {
        chunk = chunk.min(end);
        file.seek(SeekFrom::Start(end - chunk))?;
        let mut bytes = vec![0; usize::try_from(chunk).unwrap_or(usize::MAX)];
        file.read_exact(&mut bytes)?;
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if text.is_empty() {
            return Ok(None);
        }
        match text.iter().rposition(|byte| *byte == b'\n') {
            Some(before) => return Ok(Some(bytes.split_off(before + 1))),
            None if chunk == end => return Ok(Some(bytes)),
            None => chunk = chunk.saturating_mul(4),
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare the disk by hand")]
mod tests {
    use super::*;

    #[test]
    fn tells_a_newer_kind_from_no_record() {
        assert_eq!(
            unknown_kind(br#"{"kind":"teleported","data":{}}"#).as_deref(),
            Some("teleported")
        );
        assert_eq!(unknown_kind(br#"{"kind":"barrier"}"#), None);
        assert_eq!(unknown_kind(br#"{"kind":"published"}"#), None);
        assert_eq!(unknown_kind(br#"{"kind":"telep"#), None);
    }

    #[test]
    fn finds_the_last_line_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let long = "y".repeat(300_000);
        for (text, last) in [
            ("", None),
            ("a\n", Some("a")),
            ("a\nbc\n", Some("bc")),
            (&format!("a\n{long}\n"), Some(long.as_str())),
            (&format!("{long}\n"), Some(long.as_str())),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(last_line(&path).unwrap(), last.map(Digest::of));
        }
    }
}
