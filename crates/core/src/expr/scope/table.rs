//! Tables: a header, and rows whose cells are kept apart by commas, semicolons or tabs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _};

use csv::{ErrorKind, Position, ReaderBuilder, StringRecord};
use serde_json::{Map, Value};

use super::columns::Columns;
use super::quotes::{CheckedTable, Misplaced};
use super::separator::{SAMPLE, separator};
use super::source::{ScopeError, open, read_error, text, wrong};
use crate::base::foreign_text::{EncodingError, is_utf16};
use crate::base::source::Source;
use crate::expr::place::excerpt;

/// How much longer than a table its records may be, because each repeats the names of its columns: a constant number of bytes, and
/// a number for each byte of the table.
const NAMES: u64 = 64 << 20;
const NAMES_A_BYTE: u64 = 64;

const IN_A_SPREADSHEET: &str = "(in a spreadsheet: `CSV UTF-8`)";

/// A table that is read row by row.
struct TableReader<'s, R> {
    source: &'s dyn Source,
    csv: csv::Reader<CheckedTable<R>>,
    header: Vec<String>,
    row: StringRecord,
}

impl<'s, R: BufRead> TableReader<'s, R> {
    /// Reads the header.
    fn open(
        source: &'s dyn Source,
        mut reader: R,
        columns: Option<&Columns>,
    ) -> Result<Self, ScopeError> {
        let failed = |error: std::io::Error| read_error(source, &error);
        let start = reader.fill_buf().map_err(failed)?;
        if is_utf16(start) {
            let message = format!("{} {IN_A_SPREADSHEET}", EncodingError::Utf16);
            return Err(wrong(source, message));
        }
        if start.starts_with("\u{feff}".as_bytes()) {
            reader.consume(3);
        }
        let mut sample = Vec::new();
        let mut begin = open(source)?.take(SAMPLE as u64 + 4);
        begin.read_to_end(&mut sample).map_err(failed)?;
        let sample = sample
            .strip_prefix("\u{feff}".as_bytes())
            .unwrap_or(&sample);
        if sample.starts_with(b"sep=") {
            let message =
                "expected a header, found a line that sets the separator for Excel: remove it";
            return Err(wrong_at(source, Some(1), message.to_owned()));
        }
        let separator = separator(sample, columns)
            .map_err(|error| wrong_at(source, line_of(source, 0), error.to_string()))?;
        let mut csv = ReaderBuilder::new()
            .delimiter(separator)
            .from_reader(CheckedTable::new(reader, separator));
        let row = csv
            .headers()
            .map_err(|error| csv_fault(source, &error))?
            .clone();
        let header: Vec<String> = row.iter().map(|cell| cell.trim().to_owned()).collect();
        let mut names = BTreeSet::new();
        if let Some(name) = header.iter().find(|name| !names.insert(name.as_str())) {
            let message = format!("the header has `{}` twice", excerpt(name, 60));
            return Err(wrong_at(source, line_of(source, 0), message));
        }
        Ok(Self {
            source,
            csv,
            header,
            row,
        })
    }

    /// Reads the next row. False: there is none.
    fn next(&mut self) -> Result<bool, ScopeError> {
        let read = self.csv.read_record(&mut self.row);
        read.map_err(|error| csv_fault(self.source, &error))
    }

    /// Where the row read last begins.
    fn begin(&self) -> usize {
        self.row.position().map_or(0, Position::byte) as usize
    }

    /// An error of the row read last.
    fn wrong(&self, message: String) -> ScopeError {
        wrong_at(self.source, line_of(self.source, self.begin()), message)
    }

    /// Returns the position of each of these columns in the header.
    fn places(&self, columns: &Columns) -> Result<Vec<Option<usize>>, ScopeError> {
        let places = columns.places(&self.header);
        places.map_err(|why| {
            let line = if self.header.is_empty() {
                Some(1)
            } else {
                line_of(self.source, 0)
            };
            wrong_at(self.source, line, why)
        })
    }
}

/// An error at a line of a file.
fn wrong_at(source: &dyn Source, line: Option<u64>, message: String) -> ScopeError {
    let name = source.name();
    ScopeError::Parse {
        file: line.map_or(name.clone(), |line| format!("{name}:{line}")),
        message,
    }
}

/// Returns the names of a table's columns.
///
/// # Errors
/// If the file cannot be read, or its header names a column twice.
pub fn header(source: &dyn Source) -> Result<Vec<String>, ScopeError> {
    let text = text(source)?;
    TableReader::open(source, text.as_bytes(), None).map(|table| table.header)
}

/// Returns the lines, from 1, on which the rows of a table begin.
///
/// # Errors
/// If the file cannot be read as a table.
pub(crate) fn lines(
    source: &dyn Source,
    columns: Option<&Columns>,
) -> Result<Vec<u64>, ScopeError> {
    let text = text(source)?;
    let mut table = TableReader::open(source, text.as_bytes(), columns)?;
    let mut lines = Vec::new();
    let (mut counted, mut line) = (0, 1);
    while table.next()? {
        let start = begins(text.as_bytes(), table.begin());
        line += newlines(&text.as_bytes()[counted..start]);
        counted = start;
        lines.push(line);
    }
    Ok(lines)
}

/// Reads the rows of a table one by one, numbered from 1. With declared columns a row has their order and types.
///
/// # Errors
/// If the file cannot be read as a table, differs from the declared columns, or `each` fails.
pub(crate) fn rows<E: From<ScopeError>>(
    source: &dyn Source,
    reader: impl BufRead,
    columns: Option<&Columns>,
    each: &mut dyn FnMut(u64, Value) -> Result<(), E>,
) -> Result<(), E> {
    let mut table = TableReader::open(source, reader, columns)?;
    let places = columns.map(|columns| table.places(columns)).transpose()?;
    let declared = columns.zip(places);
    let names: usize = table.header.iter().map(String::len).sum();
    let mut number = 0;
    while table.next()? {
        let repeated = (names as u64).saturating_mul(number);
        if repeated > NAMES + NAMES_A_BYTE * table.begin() as u64 {
            let message = format!(
                "the names of the columns have {names} bytes, and each row repeats them: shorten them"
            );
            return Err(table.wrong(message).into());
        }
        let record: Map<String, Value> = match &declared {
            Some((columns, places)) => columns
                .cells(places, &table.row)
                .map(|(name, value)| Ok((name.to_owned(), value?)))
                .collect::<Result<_, String>>()
                .map_err(|why| table.wrong(why))?,
            None => {
                let cells = table.header.iter().zip(table.row.iter());
                cells
                    .map(|(name, cell)| (name.clone(), Value::from(cell)))
                    .collect()
            }
        };
        number += 1;
        each(number, Value::Object(record))?;
    }
    Ok(())
}

/// Returns the cells of a table that are not of their column's type, each with its line; at most `limit`.
///
/// # Errors
/// If the file cannot be read as a table, or its header differs from the declared columns.
pub fn misfits(
    source: &dyn Source,
    columns: &Columns,
    limit: usize,
) -> Result<Vec<String>, ScopeError> {
    let reader = BufReader::with_capacity(1 << 16, open(source)?);
    let mut table = TableReader::open(source, reader, Some(columns))?;
    let places = table.places(columns)?;
    let mut found = Vec::new();
    while found.len() < limit && table.next()? {
        let wrong = columns
            .cells(&places, &table.row)
            .filter_map(|(_, value)| value.err());
        found.extend(wrong.map(|why| table.wrong(why).to_string()));
    }
    found.truncate(limit);
    Ok(found)
}

/// Returns the start of a row, given the position of the reader of tables, which may be before the line ends that precede the row.
fn begins(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    let blank = bytes[at..]
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'));
    at + blank.count()
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.split(|&byte| byte == b'\n').count() as u64 - 1
}

/// Returns the bytes of a file behind its byte order mark; none if it cannot be read again.
fn bytes_of(source: &dyn Source) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    source.open().ok()?.read_to_end(&mut bytes).ok()?;
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..3);
    }
    Some(bytes)
}

/// Returns the line of a row that the reader places here; its own count is off by the ends of lines before it.
fn line_of(source: &dyn Source, at: usize) -> Option<u64> {
    let bytes = bytes_of(source)?;
    Some(1 + newlines(&bytes[..begins(&bytes, at)]))
}

fn csv_fault(source: &dyn Source, error: &csv::Error) -> ScopeError {
    let misplaced = match error.kind() {
        ErrorKind::Io(error) => error.get_ref(),
        _ => None,
    };
    let misplaced = misplaced.and_then(|cause| cause.downcast_ref::<Misplaced>());
    let position = || error.position().map(|at| at.byte() as usize);
    let at = misplaced.map(|misplaced| misplaced.at).or_else(position);
    let line = at.and_then(|at| line_of(source, at));
    let message = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("expected {expected_len} cells as in the header, found {len}")
        }
        ErrorKind::Utf8 { .. } => {
            format!("it is not UTF-8 text: save it as UTF-8 {IN_A_SPREADSHEET}")
        }
        ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    wrong_at(source, line, message)
}
