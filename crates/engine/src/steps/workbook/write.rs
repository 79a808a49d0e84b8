//! Writes a compiled workbook file as an Excel workbook.

use std::io::{Read, Seek, Write};

use milepost_core::expr::select::{ReadError, Select};
use milepost_formats::xlsx::{XlsxError, XlsxInfo, XlsxWriter};
use serde_json::{Map, Value};

use super::declared::WorkbookError;
use super::rows::{CompiledWorkbook, Rows};

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
    out: W,
) -> Result<Vec<WrittenSheet>, WorkbookError> {
    let file = &workbook.workbook.file;
    let mut writer = XlsxWriter::new(info)?;
    let mut written = Vec::new();
    for (declared, programs) in workbook.workbook.sheets.iter().zip(&workbook.sheets) {
        let name = &declared.name;
        let bound = Rows::bind(file, declared, programs, scope)?;
        let refused = |error: XlsxError| match error {
            XlsxError::Sheet { sheet, reason } => WorkbookError::Sheet {
                file: file.clone(),
                sheet,
                reason,
            },
            error @ XlsxError::Write(_) => error.into(),
        };
        let mut sheet = writer.sheet(declared.layout()).map_err(refused)?;
        let has_columns = declared.columns.is_some();
        let mut number = 0;
        let mut one = |row: Value| {
            number += 1;
            let lists = if has_columns {
                vec![bound.cells(row, number)?]
            } else {
                bare(row).map_err(|reason| WorkbookError::Sheet {
                    file: file.clone(),
                    sheet: name.clone(),
                    reason,
                })?
            };
            lists
                .iter()
                .try_for_each(|cells| sheet.row(cells).map_err(refused))
        };
        if let (Some(input), Some(stream)) = (&declared.input, &declared.stream) {
            feed(input, stream, &mut |record| {
                bound.of_record(record)?.into_iter().try_for_each(&mut one)
            })?;
        } else {
            programs.rows(scope)?.into_iter().try_for_each(&mut one)?;
        }
        written.push(WrittenSheet {
            sheet: name.clone(),
            rows: sheet.finish().map_err(refused)?,
        });
    }
    writer.save(out)?;
    Ok(written)
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
