//! Refuses tables whose quotes or zero bytes hide a part of a cell, which the reader of tables would take without a word.

use std::io::{self, Read};

/// A byte that a table must not have.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Misplaced {
    /// The number of bytes before it.
    pub(super) at: usize,
    message: &'static str,
}

const ZERO: &str = "unexpected zero byte: a table must be text";
const OPEN: &str = "a quote is opened here and never closed";
const AFTER: &str = "text follows the quote that closes a cell: quote the whole cell, and write a quote within it twice";

/// The part of a cell before the next byte.
#[derive(Clone, Copy, PartialEq)]
enum CellPart {
    /// Not in a quoted cell.
    Plain,
    /// Between the quotes of a cell.
    Quoted,
    /// After a quote that closes a cell, or is the first of two.
    Quote,
    /// After the quoted part of a cell and blanks.
    Closed,
}

/// The text of a table, checked while it is read.
pub(super) struct CheckedTable<R> {
    text: R,
    separator: u8,
    /// The number of bytes that were read.
    read: usize,
    /// The position of the last quote that opens a cell.
    opened: usize,
    part: CellPart,
    /// The byte before the next one.
    before: u8,
}

impl<R: Read> CheckedTable<R> {
    /// Starts at the header.
    pub(super) fn new(text: R, separator: u8) -> Self {
        Self {
            text,
            separator,
            read: 0,
            opened: 0,
            part: CellPart::Plain,
            before: b'\n',
        }
    }

    /// Checks the next bytes; without bytes, the end.
    fn check(&mut self, bytes: &[u8]) -> Result<(), Misplaced> {
        let misplaced = |at, message| Err(Misplaced { at, message });
        if bytes.is_empty() && self.part == CellPart::Quoted {
            return misplaced(self.opened, OPEN);
        }
        let is_end = |byte| byte == self.separator || matches!(byte, b'\n' | b'\r');
        let mut at = 0;
        while at < bytes.len() {
            if matches!(self.part, CellPart::Plain | CellPart::Quoted) {
                let mut rest = bytes[at..].iter();
                let Some(ahead) = rest.position(|byte| matches!(byte, b'"' | 0)) else {
                    break;
                };
                at += ahead;
            }
            let before = at
                .checked_sub(1)
                .map_or(self.before, |before| bytes[before]);
            self.part = match (self.part, bytes[at]) {
                (_, 0) => return misplaced(self.read + at, ZERO),
                (CellPart::Plain, _) if !is_end(before) => CellPart::Plain,
                (CellPart::Plain, _) => {
                    self.opened = self.read + at;
                    CellPart::Quoted
                }
                (CellPart::Quote, b'"') => CellPart::Quoted,
                (CellPart::Quoted, _) => CellPart::Quote,
                (_, byte) if is_end(byte) => CellPart::Plain,
                (_, b' ' | b'\t') => CellPart::Closed,
                _ => return misplaced(self.read + at, AFTER),
            };
            at += 1;
        }
        self.before = bytes.last().copied().unwrap_or(self.before);
        self.read += bytes.len();
        Ok(())
    }
}

impl<R: Read> Read for CheckedTable<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let size = self.text.read(bytes)?;
        self.check(&bytes[..size]).map_err(io::Error::other)?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misplaced_bytes_are_found_in_parts_of_any_length() {
        for (text, expected) in [
            ("a,b\n\"1\"x,2\n", Some(7)),
            ("a,b\n\"1\" x,2\n", Some(8)),
            ("a,b\n\"1\" \"2\",3\n", Some(8)),
            ("a,b\n\"1\"\"\"x\n", Some(9)),
            ("a,b\n\"1\"\"x\"\r\n\"2\",3", None),
            ("a,b\n\"1\" ,\"\"\n", None),
            ("a,b\n3/4\" x,1\"2\"3\n", None),
            ("a,b\n\"1\n2\",\"x,\"\n", None),
            ("\"a\"b,c\n", Some(3)),
            ("a,b\n1,\0\n", Some(6)),
            ("a,b\n1,\"\0\"\n", Some(7)),
            ("a;b\n\"1\";\"2\"\n", Some(7)),
            ("a,b\n1,\"2\"\"\n3,4\n", Some(6)),
            ("a,b\n1,\"", Some(6)),
        ] {
            for length in 1..=text.len() {
                let mut table = CheckedTable::new(text.as_bytes(), b',');
                let (mut bytes, mut found) = (vec![0; length], None);
                while found.is_none() {
                    match table.read(&mut bytes) {
                        Ok(0) => break,
                        Ok(_) => {}
                        Err(error) => found = error.downcast::<Misplaced>().ok(),
                    }
                }
                let found = found.map(|found| found.at);
                assert_eq!(found, expected, "{text:?} in parts of {length}");
            }
        }
    }
}
