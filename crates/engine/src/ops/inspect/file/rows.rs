//! Rows of a file: of a CSV file, or of a list of objects in JSON.

use milepost_core::base::foreign_text::without_mark;
use milepost_core::expr::pointer;
use milepost_core::expr::select::{PathStep, Select};
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

/// The rows of a page.
const PAGE: u64 = 200;

/// The most columns that are shown.
const COLUMNS: usize = 40;

/// How much of a file is read for its rows, in bytes.
const READ: u64 = 64 << 20;

/// Rows of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The number of columns that are left out.
    pub more_columns: u64,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// The page, from 1.
    pub page: u64,
    /// True if rows follow.
    pub has_more: bool,
    /// True if only the first 64 MiB were read, and rows may follow.
    pub is_cut: bool,
}

/// A row of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableRow {
    /// The number of the row, from 1.
    pub number: u64,
    /// The JSON pointer of the object; empty in a CSV file.
    pub pointer: String,
    /// The values by column; `None` where the object has none.
    pub cells: Vec<Option<Value>>,
}

/// An object of a list, with its position.
type Item = (u64, Value);

impl FileTable {
    fn of(pointer: &str, items: Vec<Item>, page: u64, has_more: bool) -> Self {
        let mut columns: Vec<String> = Vec::new();
        let mut known: HashSet<&str> = HashSet::new();
        for (_, item) in &items {
            let names = item
                .as_object()
                .into_iter()
                .flat_map(|object| object.keys());
            for name in names {
                if known.insert(name) && columns.len() < COLUMNS {
                    columns.push(name.clone());
                }
            }
        }
        let more_columns = (known.len() - columns.len()) as u64;
        let rows = items.into_iter().map(|(at, mut item)| TableRow {
            number: at + 1,
            pointer: format!("{pointer}/{at}"),
            cells: columns
                .iter()
                .map(|name| item.get_mut(name).map(Value::take))
                .collect(),
        });
        Self {
            rows: rows.collect(),
            columns,
            more_columns,
            page,
            has_more,
            is_cut: false,
        }
    }
}

/// Returns a page of the first list of objects in a document; `None` if it has none.
pub(super) fn rows_of(document: &Value, page: u64) -> Option<FileTable> {
    let is_list = |value: &Value| {
        let items = value.as_array();
        items.is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object))
    };
    let (pointer, list) = match document {
        Value::Object(object) => {
            let (name, list) = object.iter().find(|(_, value)| is_list(value))?;
            (pointer::below("", name), list)
        }
        list if is_list(list) => (String::new(), list),
        _ => return None,
    };
    let items = list.as_array()?;
    let pages = (items.len() as u64).div_ceil(PAGE);
    let page = page.clamp(1, pages);
    let first = (page - 1) * PAGE;
    let shown = items.iter().enumerate().skip(first as usize);
    let shown = shown.take(PAGE as usize);
    let shown = shown.map(|(at, item)| (at as u64, item.clone())).collect();
    Some(FileTable::of(&pointer, shown, page, page < pages))
}

/// Returns a page of the list of objects in a large file: the document, the declared list, or `elements`. `None` if there is none.
pub(super) fn json_rows(
    place: &Path,
    stream: Option<&Select>,
    page: u64,
) -> io::Result<Option<FileTable>> {
    let list = Select::of([PathStep::Each]);
    let elements = Select::of([PathStep::Field("elements".to_owned()), PathStep::Each]);
    let declared = stream.map(Select::items);
    for select in declared.iter().chain([&list, &elements]) {
        let Some(pointer) = pointer_of(select) else {
            continue;
        };
        let (items, has_more, is_cut) = read_items(place, select, page)?;
        if !items.is_empty() && items.iter().all(|(_, item)| item.is_object()) {
            let table = FileTable::of(&pointer, items, page, has_more);
            return Ok(Some(FileTable { is_cut, ..table }));
        }
    }
    Ok(None)
}

/// Returns the pointer of the only list that a path selects.
fn pointer_of(select: &Select) -> Option<String> {
    let (last, steps) = select.steps().split_last()?;
    let mut pointer = String::new();
    for step in steps {
        match step {
            PathStep::Field(name) => pointer::push(&mut pointer, name),
            PathStep::Each => return None,
        }
    }
    (*last == PathStep::Each).then_some(pointer)
}

/// Returns the items of a page, whether items follow, and whether the file was read only in part.
fn read_items(place: &Path, select: &Select, page: u64) -> io::Result<(Vec<Item>, bool, bool)> {
    let open = read::open(place)?;
    let is_large = open.metadata()?.len() > READ;
    let first = page.max(1).saturating_sub(1).saturating_mul(PAGE);
    let (mut items, mut at, mut has_more) = (Vec::new(), 0, false);
    // The error only ends reading. A file that is broken or cut later on has these items too.
    let _ = select.read_text::<()>(io::BufReader::new(open.take(READ)), &mut |text, _| {
        if items.len() as u64 == PAGE {
            has_more = true;
            return Err(());
        }
        if at >= first {
            items.push((at, serde_json::from_str(text).map_err(|_| ())?));
        }
        at += 1;
        Ok(())
    });
    Ok((items, has_more, is_large && !has_more))
}

/// Returns a page of a CSV file.
///
/// # Errors
/// When it cannot be read, or is not a table.
pub(super) fn csv_rows(place: &Path, page: u64) -> csv::Result<FileTable> {
    let mut open = read::open(place)?;
    let is_large = open.metadata()?.len() > READ;
    let mut start = Vec::new();
    Read::by_ref(&mut open).take(4096).read_to_end(&mut start)?;
    let separator = separator(&start);
    let whole = io::Cursor::new(start).chain(open.take(READ));
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .from_reader(whole);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let header = reader.byte_headers()?.clone();
    let mut columns: Vec<String> = header.iter().map(text).collect();
    if let Some(first) = columns.first_mut() {
        *first = without_mark(first).to_owned();
    }
    let more_columns = columns.len().saturating_sub(COLUMNS) as u64;
    columns.truncate(COLUMNS);
    let first = page.max(1).saturating_sub(1).saturating_mul(PAGE);
    let (mut rows, mut at, mut has_more) = (Vec::new(), 0, false);
    for record in reader.byte_records() {
        let record = record?;
        if rows.len() as u64 == PAGE {
            has_more = true;
            break;
        }
        if at >= first {
            let cells = record.iter().take(COLUMNS);
            rows.push(TableRow {
                number: at + 1,
                pointer: String::new(),
                cells: cells.map(|cell| Some(Value::String(text(cell)))).collect(),
            });
        }
        at += 1;
    }
    Ok(FileTable {
        columns,
        more_columns,
        rows,
        page: page.max(1),
        has_more,
        is_cut: is_large && !has_more,
    })
}

/// Returns the separator that the first line has most of: a tab, a semicolon or a comma.
fn separator(start: &[u8]) -> u8 {
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let count = |separator: u8| line.split(|byte| *byte == separator).count();
    let all = [b',', b';', b'\t'];
    let most = all
        .into_iter()
        .rev()
        .max_by_key(|separator| count(*separator));
    most.unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_list_of_objects_is_a_table() {
        let document =
            json!({"n": 1, "codes": [1, 2], "a/b": [{"x": 1}, {"y": {"z": 2}, "x": null}]});
        let row = |number, cells| TableRow {
            number,
            pointer: format!("/a~1b/{}", number - 1),
            cells,
        };
        let expected = FileTable {
            columns: vec!["x".to_owned(), "y".to_owned()],
            more_columns: 0,
            rows: vec![
                row(1, vec![Some(json!(1)), None]),
                row(2, vec![Some(json!(null)), Some(json!({"z": 2}))]),
            ],
            page: 1,
            has_more: false,
            is_cut: false,
        };
        assert_eq!(rows_of(&document, 9), Some(expected));
        for none in [
            json!([]),
            json!([1]),
            json!({"a": [{"x": 1}, 2]}),
            json!("x"),
        ] {
            assert_eq!(rows_of(&none, 1), None);
        }
        let many: Vec<Value> = (0..401).map(|n| json!({"n": n})).collect();
        let last = rows_of(&json!(many), 3).unwrap();
        assert_eq!((last.rows.len(), last.has_more), (1, false));
        assert_eq!(
            (last.rows[0].number, last.rows[0].pointer.as_str()),
            (401, "/400")
        );
    }

    #[test]
    fn a_wide_table_is_cut_and_the_separator_is_that_of_the_first_line() {
        let wide: serde_json::Map<String, Value> =
            (0..60_000).map(|n| (n.to_string(), json!(n))).collect();
        let table = rows_of(&json!([wide]), 1).unwrap();
        assert_eq!((table.columns.len(), table.more_columns), (40, 59_960));
        let found = ["a,b\n1;2;3", "a;b,c;d", "a\tb", "a"].map(|text| separator(text.as_bytes()));
        assert_eq!(found, [b',', b';', b'\t', b',']);
    }
}
