//! Adds rows to the text of a table. Cells that are there stay as they are.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};

use super::separator::separator;
use crate::base::foreign_text::{MARK, without_mark};

/// Returns a table with these rows at its end, which have a cell for each of `columns`. The table keeps its separator, line ends
/// and the order of its columns. A column that it lacks is added if a row has a value for it. An empty table gets all columns.
///
/// # Errors
/// When the text is not a table.
pub fn append_rows(
    text: &str,
    columns: &[&str],
    rows: &[BTreeMap<&str, String>],
) -> Result<String, csv::Error> {
    let bare = without_mark(text);
    let separator = separator(bare.as_bytes(), None).map_err(std::io::Error::other)?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(bare.as_bytes());
    let old: Vec<StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let (header, old) = old
        .split_first()
        .map_or((None, &[][..]), |(header, old)| (Some(header), old));
    let mut names: Vec<&str> =
        header.map_or_else(Vec::new, |header| header.iter().map(str::trim).collect());
    let has_value = |name: &str| {
        rows.iter()
            .any(|row| row.get(name).is_some_and(|cell| !cell.is_empty()))
    };
    let before = names.len();
    let lacks = columns.iter().filter(|name| !names.contains(name));
    let added: Vec<&str> = lacks
        .copied()
        .filter(|name| header.is_none() || has_value(name))
        .collect();
    names.extend(&added);
    let end = if bare.contains("\r\n") {
        Terminator::CRLF
    } else {
        Terminator::Any(b'\n')
    };
    let mut writer = WriterBuilder::new()
        .delimiter(separator)
        .terminator(end)
        .from_writer(Vec::new());
    let mut whole = String::new();
    if added.is_empty() {
        whole.push_str(text);
        if !text.ends_with('\n') {
            whole.push_str(if bare.contains("\r\n") { "\r\n" } else { "\n" });
        }
    } else {
        whole.extend(text.starts_with(MARK).then_some(MARK));
        writer.write_record(&names)?;
        for row in old {
            let cells = (0..names.len()).map(|at| if at < before { row.get(at) } else { None });
            writer.write_record(cells.map(Option::unwrap_or_default))?;
        }
    }
    for row in rows {
        writer.write_record(
            names
                .iter()
                .map(|&name| row.get(name).map_or("", String::as_str)),
        )?;
    }
    let written = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    whole.push_str(&String::from_utf8_lossy(&written));
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 3] = ["id", "question", "why"];

    fn appended(text: &str, rows: &[[&str; 3]]) -> String {
        let rows: Vec<BTreeMap<&str, String>> = rows
            .iter()
            .map(|row| {
                COLUMNS
                    .into_iter()
                    .zip(row.iter().map(|&cell| cell.to_owned()))
                    .collect()
            })
            .collect();
        append_rows(text, &COLUMNS, &rows).unwrap()
    }

    #[test]
    fn a_table_keeps_its_bytes_separator_order_and_line_ends() {
        assert_eq!(
            appended("why;id;question\r\n \"a;b\";1;\r\n", &[["2", "q", "x;y"]]),
            "why;id;question\r\n \"a;b\";1;\r\n\"x;y\";2;q\r\n"
        );
        assert_eq!(
            appended("id,question,why\n1,,x", &[["2", "", "a \"b\"\nc"]]),
            "id,question,why\n1,,x\n2,,\"a \"\"b\"\"\nc\"\n"
        );
        assert_eq!(
            appended("\u{feff}id,why\n1,x\n", &[["2", "", "y"]]),
            "\u{feff}id,why\n1,x\n2,y\n"
        );
    }

    #[test]
    fn a_column_is_added_only_for_a_value() {
        assert_eq!(
            appended("id,why\n1,\"a\nb\"\n\n2,\"c,d\"\n", &[["", "q", "z"]]),
            "id,why,question\n1,\"a\nb\",\n2,\"c,d\",\n,z,q\n"
        );
        assert_eq!(appended("id,why\n", &[]), "id,why\n");
        for empty in ["", "\u{feff}", "\n"] {
            let found = appended(empty, &[["1", "", "x"]]);
            assert_eq!(
                found.trim_start_matches('\u{feff}'),
                "id,question,why\n1,,x\n"
            );
        }
    }
}
