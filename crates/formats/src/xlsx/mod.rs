//! Step `xlsx`: a workbook file over the scope of a stage, written as an Excel workbook.

mod cell;
mod rows;
mod sheet;
mod workbook;

use std::io::{Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rust_xlsxwriter::{DocProperties, Workbook as File};
use serde_json::{Map, Value};

pub use rows::Compiled;
pub use workbook::{
    Chart, ChartKind, Charts, Column, ColumnOptions, Sheet, Workbook, workbook_schema,
};

use milepost_core::expr::jq::JqError;
use milepost_core::expr::select::{ReadError, Select};

/// What a workbook says of itself, and where it may work.
#[derive(Debug, Clone, Default)]
pub struct XlsxInfo<'a> {
    /// Stands in the file's properties.
    pub title: String,
    /// Date of creation. Comes from outside, so that the same records give the same bytes;
    /// without it 1980-01-01, the first date of ZIP.
    pub date: Option<jiff::civil::Date>,
    /// Folder for the rows of streamed sheets while the file grows; without it the system's own.
    pub scratch: Option<&'a Path>,
    /// Rows of a tab before the sheet goes on in the next; at most, and without it, 1,048,575.
    pub rows_per_tab: Option<u32>,
}

/// Takes a record: its JSON text.
pub type Take<'a> = dyn FnMut(&str) -> Result<(), WorkbookError> + 'a;

/// Reads records: gives each record that the plain path (second) finds in the input or output of
/// the name (first) to the function, in order.
pub type Feed<'a> = dyn FnMut(&str, &str, &mut Take<'_>) -> Result<(), WorkbookError> + 'a;

/// A feed over files: `open` gives the file of an input or output.
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

/// A sheet that was written, and its rows over all its tabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Name of the sheet.
    pub sheet: String,
    /// Rows without the header.
    pub rows: u64,
}

/// Why a workbook could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WorkbookError {
    /// The workbook file is no TOML, or not of the form of a workbook.
    #[error("{file}: {reason}")]
    Syntax {
        /// The workbook file.
        file: String,
        /// What is wrong, with its place.
        reason: String,
    },
    /// A sheet that cannot be made.
    #[error("{file}: sheet {sheet:?}: {reason}")]
    Sheet {
        /// The workbook file.
        file: String,
        /// Its name.
        sheet: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A cell whose program fails.
    #[error("{file}: sheet {sheet:?}, column {column:?}, row {row}: {reason}")]
    Cell {
        /// The workbook file.
        file: String,
        /// The sheet.
        sheet: String,
        /// Header of the column.
        column: String,
        /// Number of the record, from 1.
        row: u64,
        /// What is wrong.
        reason: String,
    },
    /// A program that cannot be compiled or fails; it names its sheet and column.
    #[error(transparent)]
    Program(#[from] JqError),
    /// Records that cannot be read.
    #[error("{0}")]
    Records(String),
    /// The file could not be written.
    #[error("cannot write the workbook: {0}")]
    Write(String),
}

/// Writes a workbook of `scope` to `out`. Streamed sheets take their records from `feed`, one at
/// a time, and are kept on disk while they grow: memory does not depend on their length.
///
/// The same workbook, scope, records and information give the same bytes.
pub fn write_workbook<W: Write + Seek + Send>(
    workbook: &Compiled,
    scope: &Map<String, Value>,
    feed: &mut Feed<'_>,
    info: &XlsxInfo<'_>,
    out: W,
) -> Result<Vec<Written>, WorkbookError> {
    // The writer panics where its scratch file cannot grow, as on a full disk.
    let result = catch_unwind(AssertUnwindSafe(|| write(workbook, scope, feed, info, out)));
    result.unwrap_or_else(|cause| {
        let words = cause
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| cause.downcast_ref::<&str>().copied())
            .unwrap_or("the writer stopped");
        Err(WorkbookError::Write(format!(
            "{words}; is there room on the disk?"
        )))
    })
}

fn write<W: Write + Seek + Send>(
    workbook: &Compiled,
    scope: &Map<String, Value>,
    feed: &mut Feed<'_>,
    info: &XlsxInfo<'_>,
    out: W,
) -> Result<Vec<Written>, WorkbookError> {
    let mut file = File::new();
    if let Some(folder) = info.scratch {
        file.set_tempdir(folder).map_err(refused)?;
    }
    let date = info.date.unwrap_or(jiff::civil::date(1980, 1, 1));
    let created = rust_xlsxwriter::ExcelDateTime::from_ymd(
        u16::try_from(date.year()).unwrap_or(1980),
        date.month() as u8,
        date.day() as u8,
    )
    .map_err(refused)?;
    file.set_properties(
        &DocProperties::new()
            .set_title(&info.title)
            .set_creation_datetime(&created),
    );
    let most = info.rows_per_tab.unwrap_or(sheet::ROWS).max(1);
    let mut formats = sheet::Formats::default();
    let mut written = Vec::new();
    let mut bytes = 0;
    for (declared, programs) in workbook.workbook.sheets.iter().zip(&workbook.sheets) {
        let bound = rows::Rows::bind(&workbook.workbook.file, declared, programs, scope)?;
        let refuse = |e: rust_xlsxwriter::XlsxError| WorkbookError::Sheet {
            file: workbook.workbook.file.clone(),
            sheet: declared.name.clone(),
            reason: e.to_string(),
        };
        let mut tab = sheet::Tab::begin(declared, most, &mut file, &formats).map_err(refuse)?;
        let has_columns = declared.columns.is_some();
        let mut number = 0;
        let mut one = |row: Value| {
            number += 1;
            let lists = if has_columns {
                vec![bound.cells(row, number)?]
            } else {
                bare(row).map_err(|reason| WorkbookError::Sheet {
                    file: workbook.workbook.file.clone(),
                    sheet: declared.name.clone(),
                    reason,
                })?
            };
            for cells in lists {
                tab.row(&cells, &mut file, &mut formats).map_err(refuse)?;
            }
            Ok(())
        };
        if let (Some(input), Some(stream)) = (&declared.input, &declared.stream) {
            feed(input, stream, &mut |record| {
                bound.of_record(record)?.into_iter().try_for_each(&mut one)
            })?;
        } else {
            for row in programs.rows(scope)? {
                one(row)?;
            }
        }
        bytes += tab.bytes;
        let rows = tab.end(&mut file).map_err(refuse)?;
        written.push(Written {
            sheet: declared.name.clone(),
            rows,
        });
    }
    // Beyond 4 GB a part of the archive needs the long form, which not every reader knows.
    file.use_zip_large_file(bytes > 2 << 30);
    file.save_to_writer(out).map_err(refused)?;
    Ok(written)
}

/// Rows of a sheet without columns: an array of cells, or an array of such arrays.
fn bare(row: Value) -> Result<Vec<Vec<Value>>, String> {
    let Value::Array(cells) = row else {
        return Err(
            "without `columns` a row is an array of cells; give `[…]`, or say `columns`".to_owned(),
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

fn refused(error: rust_xlsxwriter::XlsxError) -> WorkbookError {
    WorkbookError::Write(error.to_string())
}
