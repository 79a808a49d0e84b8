//! Writes a compiled workbook file as an Excel workbook.

use std::io::{Read, Seek, Write};

use milepost_core::expr::jq::{Evaluator, Gathered};
use milepost_core::expr::select::{ReadError, Select};
use milepost_formats::xlsx::{XlsxError, XlsxInfo, XlsxWriter};
use serde_json::{Map, Value};

use super::declared::WorkbookError;
use super::rows::{CompiledWorkbook, Rows};

/// The rows whose cells are computed before they are written, if more need not be.
const AT_ONCE: usize = 256;

/// Receives the JSON text of one record.
pub(crate) type EachRecord<'a> = dyn FnMut(&str) -> Result<(), WorkbookError> + 'a;

/// Reads the records that a plain path (second argument) selects from the input or output of a name (first argument), in order.
pub(crate) type Feed<'a> =
    dyn FnMut(&str, &str, &mut EachRecord<'_>) -> Result<(), WorkbookError> + 'a;

/// Returns a feed over files; `open` opens the file of an input or output.
pub fn file_feed<'a, R: Read + 'a>(
    mut open: impl FnMut(&str) -> std::io::Result<R> + 'a,
) -> Box<Feed<'a>> {
    Box::new(move |input, path, each| {
        let wrong = |reason: String| WorkbookError::Records(format!("{input}: {reason}"));
        // The path names the array; its items are the records.
        let path = if path.ends_with("[]") {
            path.to_owned()
        } else {
            format!("{path}[]")
        };
        let select = Select::parse(&path).map_err(|e| wrong(e.to_string()))?;
        let file = open(input).map_err(|e| wrong(e.to_string()))?;
        match select.read_text(file, &mut |text, _| each(text)) {
            Ok(_) => Ok(()),
            Err(ReadError::Select(e)) => Err(wrong(e.to_string())),
            Err(ReadError::Each(e)) => Err(e),
        }
    })
}

/// A sheet that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenSheet {
    /// Its name.
    pub sheet: String,
    /// Rows over all tabs, without headers.
    pub rows: u64,
}

/// Writes a workbook over `scope` to `out`. Streamed sheets take their records from `feed`, one at a time; their rows stay on
/// disk until the workbook is complete, so that memory does not depend on their number.
///
/// The same workbook, scope, records and `info` give the same bytes.
///
/// # Errors
/// When a program fails, records cannot be read, or the workbook cannot be written.
pub fn write_workbook<W: Write + Seek + Send>(
    workbook: &CompiledWorkbook,
    scope: &Map<String, Value>,
    feed: &mut Feed<'_>,
    info: &XlsxInfo<'_>,
    evaluator: &dyn Evaluator,
    out: W,
) -> Result<Vec<WrittenSheet>, WorkbookError> {
    let file = &workbook.workbook.file;
    let mut writer = XlsxWriter::new(info)?;
    let formulas = &workbook.workbook.formulas;
    let names: Vec<&str> = formulas.keys().map(String::as_str).collect();
    let sheets = workbook.workbook.sheets.iter().zip(&workbook.sheets);
    // A sheet that reads another is written after it, wherever it stands.
    let mut order: Vec<_> = sheets.enumerate().collect();
    order.sort_by_key(|(position, (declared, _))| (declared.reads_another(), *position));
    let mut written = Vec::new();
    for (position, (declared, programs)) in order {
        let name = &declared.name;
        let mut bound = Rows::bind(file, declared, programs, scope, evaluator)?;
        let refused = |error: XlsxError| match error {
            XlsxError::Sheet { sheet, reason } => WorkbookError::Sheet {
                file: file.clone(),
                sheet,
                reason,
            },
            error @ XlsxError::Write(_) => error.into(),
        };
        let mut sheet = writer
            .sheet_at(position, declared.layout(formulas))
            .map_err(refused)?;
        let has_columns = declared.columns.is_some();
        let figures = declared.named_figures();
        let (record_bytes, row_count) = bound.at_once();
        let mut number = 1;
        let mut write = |bound: &mut Rows<'_>, rows: Vec<Value>| {
            let first = number;
            number += rows.len() as u64;
            let lists = if has_columns {
                bound.cells(rows, first)?
            } else {
                let rows = rows.into_iter().map(bare).collect::<Result<Vec<_>, _>>();
                let rows = rows.map_err(|reason| WorkbookError::Sheet {
                    file: file.clone(),
                    sheet: name.clone(),
                    reason,
                })?;
                rows.into_iter().flatten().collect()
            };
            for (cells, number) in lists.iter().zip(first..) {
                let (cells, picked) = cells.split_at(cells.len() - figures.len());
                let picked = pick(&names, &figures, picked, cells.len());
                let picked = picked.map_err(|reason| WorkbookError::Cell {
                    file: file.clone(),
                    sheet: name.clone(),
                    column: "formula".to_owned(),
                    row: number,
                    reason,
                })?;
                sheet.row_with(cells, &picked).map_err(refused)?;
            }
            Ok::<(), WorkbookError>(())
        };
        if let (Some(input), Some(stream)) = (&declared.input, &declared.stream) {
            let mut records = Gathered::new(record_bytes);
            let mut rows = Vec::new();
            feed(input, stream, &mut |record| {
                let Some(records) = records.add(record.to_owned(), record.len()) else {
                    return Ok(());
                };
                rows.extend(bound.of_records(records)?);
                if rows.len() < row_count {
                    return Ok(());
                }
                write(&mut bound, std::mem::take(&mut rows))
            })?;
            rows.extend(bound.of_records(records.rest())?);
            write(&mut bound, rows)?;
        } else {
            let mut rows = programs.rows(scope, evaluator)?.into_iter();
            while rows.len() > 0 {
                let some = rows.by_ref().take(row_count.max(AT_ONCE));
                write(&mut bound, some.collect())?;
            }
        }
        let rows = sheet.finish().map_err(refused)?;
        let sheet = name.clone();
        written.push((position, WrittenSheet { sheet, rows }));
    }
    writer.save(out)?;
    written.sort_by_key(|(position, _)| *position);
    Ok(written.into_iter().map(|(_, sheet)| sheet).collect())
}

/// Returns for each cell the position of the formula that its row names. `columns` are the columns of the names in `found`.
fn pick(
    names: &[&str],
    columns: &[usize],
    found: &[Value],
    cells: usize,
) -> Result<Vec<Option<usize>>, String> {
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let mut picked = vec![None; cells];
    for (&column, name) in columns.iter().zip(found) {
        let position = name
            .as_str()
            .and_then(|name| names.iter().position(|&known| known == name));
        if position.is_none() && !name.is_null() {
            let known = names.join(", ");
            return Err(format!("`[formulas]` has no {name}; it has {known}"));
        }
        picked[column] = position;
    }
    Ok(picked)
}

/// Returns the rows of a sheet without columns from an array of cells, or an array of such arrays.
fn bare(row: Value) -> Result<Vec<Vec<Value>>, String> {
    let Value::Array(cells) = row else {
        return Err(
            "without `columns` a row is an array of cells; emit `[…]`, or add `columns`".to_owned(),
        );
    };
    if cells.is_empty() || !cells.iter().all(Value::is_array) {
        return Ok(vec![cells]);
    }
    Ok(cells
        .into_iter()
        .map(|row| match row {
            Value::Array(cells) => cells,
            other => vec![other],
        })
        .collect())
}
