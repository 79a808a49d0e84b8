//! Writes a compiled workbook file as an Excel workbook.

use std::io::{Read, Seek, Write};

use milepost_core::expr::jq::Evaluator;
use milepost_core::expr::select::{ReadError, Select};
use milepost_formats::xlsx::{XlsxError, XlsxInfo, XlsxWriter};
use serde_json::Value;

use super::chunks::{Feed, RowSources};
use super::declared::WorkbookError;
use super::rows::CompiledWorkbook;

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
    /// The name of the sheet.
    pub sheet: String,
    /// Rows over all tabs, without headers.
    pub rows: u64,
}

/// Writes a workbook over `scope` to `out`. Streamed sheets take their records from `feed`, one at a time; their rows stay on disk
/// until the workbook is complete, so that memory does not depend on their number.
///
/// The same workbook, scope, records and `info` produce the same bytes, on however many threads cells are computed.
///
/// # Errors
/// When a program fails, records cannot be read, or the workbook cannot be written.
#[expect(clippy::too_many_arguments)]
pub fn write_workbook<W: Write + Seek + Send>(
    workbook: &CompiledWorkbook,
    scope: &Value,
    feed: &mut Feed<'_>,
    info: &XlsxInfo<'_>,
    evaluator: &dyn Evaluator,
    threads: usize,
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
        let figures = declared.named_figures();
        let mut number = 0;
        let mut write = |lists: Result<Vec<Vec<Value>>, WorkbookError>| {
            for cells in lists.map_err(|error| error.after(number))? {
                number += 1;
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
            Ok(())
        };
        let sources = RowSources {
            file,
            declared,
            programs,
            scope,
            evaluator,
            threads,
        };
        sources.each_chunk(feed, &|rows, found| rows.cells(found), &mut write)?;
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
