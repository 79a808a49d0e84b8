//! Reads what is appended to the journal, over its segments, while a run writes it. Nothing is changed.

use super::read::{Unread, line_before, misfit, read_since_seal, record};
use super::segments::{SegmentFile, segments, shared, written};
use super::{JournalError, JournalPlace};
use crate::store::disk::DiskError;
use crate::store::layout::Layout;
use crate::store::read;
use milepost_core::base::digest::Digest;
use milepost_core::model::event::Record;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::str::FromStr;

/// The number of bytes that one call reads, up to the end of a record.
const AT_ONCE: u64 = 1 << 20;

/// A place in the journal: its start, or the end of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The number of the segment, from 1.
    pub segment: u64,
    /// The number of bytes of the segment before the place.
    pub offset: u64,
}

/// A text that is not a [`Position`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a position in a journal: expected the number of a segment and an offset in bytes, such as `3:1200`"
)]
pub struct NoPosition(String);

impl Position {
    /// The start of every journal.
    pub const START: Self = Self {
        segment: 1,
        offset: 0,
    };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        let parts = text.split_once(':');
        let position = parts.and_then(|(segment, offset)| {
            Some(Self {
                segment: number(segment).filter(|segment| *segment > 0)?,
                offset: number(offset)?,
            })
        });
        position.ok_or_else(|| NoPosition(text.to_owned()))
    }
}

/// Reads the records after a position, each once.
#[derive(Debug, Clone)]
pub struct Cursor {
    position: Position,
    /// The digest of the record before the position.
    last: Option<Digest>,
}

impl Cursor {
    /// Starts after the last whole record of the journal; at its start if there is no journal yet.
    pub fn at_end(layout: &Layout) -> Result<Self, JournalError> {
        let Some(position) = written(layout)? else {
            return Ok(Self::start());
        };
        let path = layout.segment(position.segment);
        let last = chained_line(&path, position.offset).map_err(DiskError::reading(&path))?;
        if last.is_some() {
            return Ok(Self { position, last });
        }
        // The last line is torn, or a power failure left zeros before it.
        let (_, tail) = read_since_seal(layout)?;
        Ok(Self {
            position: tail.end(),
            last: tail.last,
        })
    }

    /// Starts after a position that an earlier cursor returned.
    ///
    /// # Errors
    /// [`JournalError::Gone`] when no record of the journal ends there.
    pub fn after(layout: &Layout, position: Position) -> Result<Self, JournalError> {
        if position == Position::START {
            return Ok(Self::start());
        }
        let _shared = shared(layout);
        let files = segments(layout)?;
        let Position { segment, offset } = position;
        let path = SegmentFile::with(&files, segment).path(layout);
        let gone = || JournalError::Gone {
            path: path.clone(),
            position,
        };
        let found = match position {
            _ if SegmentFile::with(&files, segment).first != segment => return Err(gone()),
            // The end of the segment before is the same place.
            Position { offset: 0, .. } => {
                let path = SegmentFile::with(&files, segment.saturating_sub(1)).path(layout);
                read::open(&path)
                    .and_then(|file| file.metadata())
                    .and_then(|found| line_before(&path, found.len()))
            }
            _ => line_before(&path, offset),
        };
        let line = found.map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::UnexpectedEof => gone(),
            _ => DiskError::new("read", &path, source).into(),
        })?;
        let line = line.as_ref().and_then(|bytes| bytes.strip_suffix(b"\n"));
        match line {
            Some(line) if record(line).is_ok() => Ok(Self {
                position,
                last: Some(Digest::of(line)),
            }),
            _ => Err(gone()),
        }
    }

    fn start() -> Self {
        Self {
            position: Position::START,
            last: None,
        }
    }

    /// Returns the place after the last record that was read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the whole records that were written since the last call, each with the position after it; of very many only the first.
    /// A half-written last line is left for a later call.
    ///
    /// # Errors
    /// When the journal cannot be read, is broken, or no longer has the position. Records before the fault are returned first.
    pub fn read(&mut self, layout: &Layout) -> Result<Vec<(Position, Record)>, JournalError> {
        let _shared = shared(layout);
        let files = segments(layout)?;
        let mut found = Vec::new();
        let mut left = AT_ONCE;
        loop {
            let file = SegmentFile::with(&files, self.position.segment);
            // A run completes a segment before it creates the next one.
            let next = Position {
                segment: file.last + 1,
                offset: 0,
            };
            let is_complete = files.iter().any(|file| file.first >= next.segment);
            match self.read_segment(layout, (file, is_complete), &mut left, &mut found) {
                Err(_) if !found.is_empty() => return Ok(found),
                Err(error) => return Err(error),
                Ok(()) if !is_complete || left == 0 => return Ok(found),
                Ok(()) => self.position = next,
            }
        }
    }

    /// Reads the rest of the segment, as far as it is whole and `left` bytes allow.
    fn read_segment(
        &mut self,
        layout: &Layout,
        (segments, is_complete): (SegmentFile, bool),
        left: &mut u64,
        found: &mut Vec<(Position, Record)>,
    ) -> Result<(), JournalError> {
        let Position { segment, offset } = self.position;
        let path = segments.path(layout);
        let fail = DiskError::reading(&path);
        let mut file = match read::open(&path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return match self.position {
                    Position::START if !is_complete => Ok(()),
                    Position { offset: 0, .. } => Err(JournalError::Missing { path }),
                    position => Err(JournalError::Gone { path, position }),
                };
            }
            Err(cause) => return Err(fail(cause).into()),
        };
        if segments.first != segment || file.metadata().map_err(&fail)?.len() < offset {
            let position = self.position;
            return Err(JournalError::Gone { path, position });
        }
        file.seek(SeekFrom::Start(offset)).map_err(&fail)?;
        let mut lines = BufReader::with_capacity(1 << 16, file);
        self.read_lines(&path, &mut lines, (segments, is_complete), left, found)
    }

    /// Reads the lines that follow the position in its segment.
    fn read_lines(
        &mut self,
        path: &Path,
        lines: &mut impl BufRead,
        (segments, is_complete): (SegmentFile, bool),
        left: &mut u64,
        found: &mut Vec<(Position, Record)>,
    ) -> Result<(), JournalError> {
        let fail = DiskError::reading(path);
        let mut line = Vec::new();
        while *left > 0 {
            line.clear();
            let size = lines.read_until(b'\n', &mut line).map_err(&fail)? as u64;
            if size == 0 {
                break;
            }
            let read = match line.strip_suffix(b"\n") {
                Some(text) => record(text).map(|record| (Digest::of(text), record)),
                // The rest may be written meanwhile, so the present end of the file proves nothing.
                None if !is_complete => break,
                None => Err(Unread::NoRecord("the line is cut off".to_owned())),
            };
            let (digest, record) = match read {
                Ok(read) => read,
                // A power failure left it, and the next run cuts it off.
                Err(Unread::NoRecord(_))
                    if !is_complete
                        && (line.contains(&0) || lines.fill_buf().map_err(&fail)?.is_empty()) =>
                {
                    break;
                }
                Err(Unread::Newer(kind)) => {
                    let place = self.place(path);
                    return Err(JournalError::Newer { place, kind });
                }
                Err(Unread::NoRecord(problem)) => return Err(self.broken(path, problem)),
            };
            let is_first = self.position.offset == 0;
            let number = if is_first { 1 } else { 2 };
            if let Some(problem) = misfit(&record, segments, number, self.last.as_ref()) {
                return Err(self.broken(path, problem));
            }
            self.position.offset += size;
            self.last = Some(digest);
            found.push((self.position, record));
            *left = left.saturating_sub(size);
        }
        Ok(())
    }

    /// Returns the error for a line that does not follow: the journal is another one if the record before is.
    fn broken(&self, path: &Path, problem: String) -> JournalError {
        let position = self.position;
        let before = line_before(path, position.offset).ok().flatten();
        let before = before.as_ref().and_then(|bytes| bytes.strip_suffix(b"\n"));
        if position.offset > 0 && before.map(Digest::of) != self.last {
            let path = path.to_owned();
            return JournalError::Gone { path, position };
        }
        let place = self.place(path);
        JournalError::Broken { place, problem }
    }

    /// Returns the place of the next line, for an error.
    fn place(&self, path: &Path) -> JournalPlace {
        let Position { segment, offset } = self.position;
        let mut before = Vec::new();
        let read = read::open(path).and_then(|file| file.take(offset).read_to_end(&mut before));
        let lines = before.split(|byte| *byte == b'\n').count() as u64;
        JournalPlace {
            path: path.to_owned(),
            segment,
            line: if read.is_ok() { lines } else { 0 },
            offset,
        }
    }
}

/// Returns the digest of the last line of a segment of this size, if it is a record that follows the line before.
fn chained_line(path: &Path, size: u64) -> std::io::Result<Option<Digest>> {
    let Some(line) = line_before(path, size)? else {
        return Ok(None);
    };
    let start = size - line.len() as u64;
    let before = line_before(path, start)?;
    let digest = |line: &Vec<u8>| line.strip_suffix(b"\n").map(Digest::of);
    let follows = line
        .strip_suffix(b"\n")
        .and_then(|text| record(text).ok())
        .is_some_and(|record| start == 0 || record.prev == before.as_ref().and_then(digest));
    Ok(digest(&line).filter(|_| follows))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file to which its writer appends a part after each end that was read.
    struct Growing(std::vec::IntoIter<&'static [u8]>);

    impl Read for Growing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let part = self.0.next().unwrap_or_default();
            buffer[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    #[test]
    fn a_line_that_grows_while_it_is_read_waits() {
        let parts: Vec<&[u8]> = vec![b"{\"half\": ", b"", b"true}\n"];
        let mut lines = BufReader::new(Growing(parts.into_iter()));
        let (mut cursor, mut left, mut found) = (Cursor::start(), AT_ONCE, Vec::new());
        let path = Path::new("000001.jsonl");
        let state = (SegmentFile::with(&[], 1), false);
        let read = cursor.read_lines(path, &mut lines, state, &mut left, &mut found);
        assert_eq!(read.map_err(|error| error.to_string()), Ok(()));
        assert_eq!((cursor.position(), found), (Position::START, vec![]));
    }

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let position = Position {
            segment: 3,
            offset: 1200,
        };
        assert_eq!(position.to_string(), "3:1200");
        assert_eq!("3:1200".parse(), Ok(position));
        for text in [
            "",
            "3",
            "3:",
            ":1",
            "0:1",
            "3:+1",
            "-3:1",
            "3:1:2",
            "3:99999999999999999999",
        ] {
            let error = text.parse::<Position>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "`{text}` is not a position in a journal: expected the number of a segment and an offset in bytes, such as `3:1200`"
                )
            );
        }
    }
}
