//! The separator of a table's cells: spreadsheets write semicolons where the comma is the decimal mark, and tabs for copied cells.

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

/// How many bytes at the beginning of a table decide its separator, however it is read.
pub(super) const SAMPLE: usize = 1 << 16;

/// Returns the separator of a table that begins with these bytes: with declared columns the one that divides the header into them,
/// otherwise the one that divides header and rows into the most columns, the same number in each.
///
/// # Errors
/// Without declared columns, if two separators fit.
pub(super) fn separator(start: &[u8], columns: Option<&Columns>) -> Result<u8, Ambiguous> {
    let sample = &start[..start.len().min(SAMPLE)];
    let candidates = SEPARATORS.into_iter().filter_map(|separator| {
        let mut all: Vec<StringRecord> = records(sample, separator).collect();
        // The last record is cut.
        if start.len() > SAMPLE && all.len() > 1 {
            all.pop();
        }
        (all.first()?.len() > 1).then_some((separator, all))
    });
    let candidates: Vec<(u8, Vec<StringRecord>)> = candidates.collect();
    let [(first, _), _, ..] = candidates.as_slice() else {
        return Ok(candidates.first().map_or(b',', |(separator, _)| *separator));
    };
    if let Some(columns) = columns {
        let mut fitting = candidates
            .iter()
            .filter(|(_, all)| columns.places(&trimmed(&all[0])).is_ok());
        return Ok(fitting.next().map_or(*first, |(separator, _)| *separator));
    }
    let widths = candidates.iter().filter_map(|(separator, all)| {
        let width = all[0].len();
        let is_even = all.iter().all(|record| record.len() == width);
        is_even.then_some((width, *separator))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_table_has_the_separator_of_its_beginning() {
        let row = "1;\"first\nsecond, third\";x\n";
        for rows in [1, 100, 4000] {
            let table = format!("id;note;\"name, given\"\n{}", row.repeat(rows));
            assert_eq!(separator(table.as_bytes(), None), Ok(b';'), "{rows}");
        }
        for cut in 0..row.len() {
            let rows = SAMPLE / row.len() + 2;
            let table = format!(
                "id;note;\"{},x\"\n{}",
                "n".repeat(cut + 1),
                row.repeat(rows)
            );
            assert_eq!(separator(table.as_bytes(), None), Ok(b';'), "{cut}");
        }
    }

    #[test]
    fn a_header_may_have_lines_and_separators_in_quotes() {
        for (table, expected) in [
            ("\"a\nb,c\";d\n1;2\n", b';'),
            ("\"a;b\"\n1\n", b','),
            ("a\n1;2\n", b','),
            ("\"a;b;c\",d\n1,2\n", b','),
        ] {
            assert_eq!(separator(table.as_bytes(), None), Ok(expected), "{table}");
        }
    }
}
