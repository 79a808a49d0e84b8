//! What stands between the cells of a table: a spreadsheet writes semicolons where the comma is the decimal mark, and tabs where
//! cells are copied.

use csv::{ReaderBuilder, StringRecord};

use super::columns::Columns;

const SEPARATORS: [u8; 3] = *b",;\t";

/// Two separators divide a table into the same number of columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the header has {columns} columns if it is divided at {} and if it is divided at {}: declare the `columns`, or put quotes around cells \
     with such a character",
    named(*.a), named(*.b)
)]
pub(super) struct Ambiguous {
    columns: usize,
    a: u8,
    b: u8,
}

fn named(separator: u8) -> &'static str {
    match separator {
        b';' => "semicolons",
        b'\t' => "tabs",
        _ => "commas",
    }
}

/// Returns the separator of a table that begins with these bytes: with declared columns the one that divides the header into them,
/// otherwise the one that divides header and rows into the most columns, the same number in each.
///
/// # Errors
/// Without declared columns, if two separators fit.
pub(super) fn separator(start: &[u8], columns: Option<&Columns>) -> Result<u8, Ambiguous> {
    let header = start.split(|&byte| byte == b'\n').next().unwrap_or(start);
    let candidates = SEPARATORS.into_iter().filter(|byte| header.contains(byte));
    let candidates: Vec<u8> = candidates.collect();
    let [first, _, ..] = candidates.as_slice() else {
        return Ok(candidates.first().copied().unwrap_or(b','));
    };
    if let Some(columns) = columns {
        let fits = |separator: &&u8| {
            let header = records(header, **separator).next();
            header.is_some_and(|header| columns.places(&trimmed(&header)).is_ok())
        };
        return Ok(candidates.iter().find(fits).copied().unwrap_or(*first));
    }
    // The last record may be cut.
    let end = start.iter().rposition(|&byte| byte == b'\n');
    let sample = &start[..end.map_or(start.len(), |end| end + 1)];
    let widths = candidates.iter().filter_map(|&separator| {
        let mut widths = records(sample, separator).map(|record| record.len());
        let width = widths.next().filter(|width| *width > 1)?;
        widths
            .all(|other| other == width)
            .then_some((width, separator))
    });
    let widths: Vec<(usize, u8)> = widths.collect();
    let widest = widths.iter().map(|(width, _)| *width).max();
    let mut best = widths.iter().filter(|(width, _)| Some(*width) == widest);
    match (best.next(), best.next()) {
        (Some(&(columns, a)), Some(&(_, b))) => Err(Ambiguous { columns, a, b }),
        (found, _) => Ok(found.map_or(*first, |(_, separator)| *separator)),
    }
}

fn trimmed(header: &StringRecord) -> Vec<String> {
    header.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Returns the records of a text that can be read.
fn records(text: &[u8], separator: u8) -> impl Iterator<Item = StringRecord> {
    let mut builder = ReaderBuilder::new();
    let builder = builder
        .has_headers(false)
        .flexible(true)
        .delimiter(separator);
    builder
        .from_reader(text)
        .into_records()
        .map_while(Result::ok)
}
