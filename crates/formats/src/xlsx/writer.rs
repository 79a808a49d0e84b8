//! The writer of workbooks and its errors.

use std::io::{Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Workbook, Worksheet};
use serde_json::Value;

use super::formula::Sheets;
use super::layout::SheetLayout;
use super::sheet::{Formats, ROWS, Tab};

/// Properties and limits of a workbook.
#[derive(Debug, Clone, Default)]
pub struct XlsxInfo<'a> {
    /// The title in the file's properties.
    pub title: String,
    /// The creation date in the file's properties; `None` writes 1980-01-01, the first date of ZIP. The same rows and properties
    /// produce the same bytes.
    pub date: Option<jiff::civil::Date>,
    /// Folder for the rows of streamed sheets while the workbook grows; `None` uses the system's temporary folder.
    pub scratch: Option<&'a Path>,
    /// Rows of a tab before the sheet continues on the next; `None` is Excel's own limit of 1,048,575.
    pub rows_per_tab: Option<u32>,
}

/// Why a workbook could not be written.
#[derive(Debug, thiserror::Error)]
pub enum XlsxError {
    /// Excel's limits or rules forbid the sheet.
    #[error("sheet {sheet:?}: {reason}")]
    Sheet {
        /// The name of the sheet.
        sheet: String,
        /// The rule, in words.
        reason: String,
    },
    /// The file or its scratch files could not be written.
    #[error("cannot write the workbook: {0}")]
    Write(String),
}

/// A workbook that is being written.
pub struct XlsxWriter {
    file: Workbook,
    formats: Formats,
    /// Tabs of finished sheets, with the position of the sheet.
    done: Vec<(usize, Vec<Worksheet>)>,
    sheets: Sheets,
    rows_per_tab: u32,
    /// About how many bytes the cells take before compression.
    bytes: u64,
}

impl XlsxWriter {
    /// Starts a workbook without sheets.
    ///
    /// # Errors
    /// When the scratch folder cannot be used or Excel cannot hold the date.
    pub fn new(info: &XlsxInfo<'_>) -> Result<Self, XlsxError> {
        let mut file = Workbook::new();
        if let Some(folder) = info.scratch {
            file.set_tempdir(folder).map_err(failed)?;
        }
        let date = info.date.unwrap_or(jiff::civil::date(1980, 1, 1));
        let created = ExcelDateTime::from_ymd(
            u16::try_from(date.year()).unwrap_or(1980),
            date.month() as u8,
            date.day() as u8,
        )
        .map_err(failed)?;
        file.set_properties(
            &DocProperties::new()
                .set_title(&info.title)
                .set_creation_datetime(&created),
        );
        Ok(Self {
            file,
            formats: Formats::default(),
            done: Vec::new(),
            sheets: Sheets::default(),
            rows_per_tab: info.rows_per_tab.unwrap_or(ROWS).clamp(1, ROWS),
            bytes: 0,
        })
    }

    /// Starts the next sheet. It becomes part of the workbook by [`SheetWriter::finish`].
    ///
    /// # Errors
    /// When Excel does not allow the name, or a figure of it reads from a sheet that is not finished.
    pub fn sheet(&mut self, layout: SheetLayout) -> Result<SheetWriter<'_>, XlsxError> {
        self.sheet_at(self.done.len(), layout)
    }

    /// Like [`XlsxWriter::sheet`], at this position among the tabs. A sheet with figures is written after the sheets that it reads
    /// from, but may come before them.
    ///
    /// # Errors
    /// The errors of [`XlsxWriter::sheet`].
    pub fn sheet_at(
        &mut self,
        position: usize,
        layout: SheetLayout,
    ) -> Result<SheetWriter<'_>, XlsxError> {
        let name = layout.name.clone();
        let tab = Tab::begin(
            layout,
            self.rows_per_tab,
            &mut self.file,
            &self.formats,
            &self.sheets,
        );
        Ok(SheetWriter {
            tab: tab.map_err(|error| refused(&name, &error))?,
            workbook: self,
            name,
            position,
        })
    }

    /// Writes the workbook.
    ///
    /// # Errors
    /// When `out` or a scratch file fails, or two sheets have the same name.
    pub fn save<W: Write + Seek + Send>(mut self, out: W) -> Result<(), XlsxError> {
        // Beyond 4 GB a part of the archive needs ZIP64, which not every reader knows.
        self.file.use_zip_large_file(self.bytes > 2 << 30);
        self.done.sort_by_key(|(position, _)| *position);
        for tab in self.done.drain(..).flat_map(|(_, tabs)| tabs) {
            self.file.push_worksheet(tab);
        }
        caught(|| self.file.save_to_writer(out).map_err(failed))
    }
}

/// A sheet that is being written.
pub struct SheetWriter<'w> {
    workbook: &'w mut XlsxWriter,
    tab: Tab,
    name: String,
    position: usize,
}

impl SheetWriter<'_> {
    /// Appends a row; a full tab continues on the next, under the same header.
    ///
    /// # Errors
    /// When the row has more cells than Excel allows (16,384) or a scratch file cannot grow.
    pub fn row(&mut self, cells: &[Value]) -> Result<(), XlsxError> {
        self.row_with(cells, &[])
    }

    /// Like [`SheetWriter::row`]. `picked` has, for each cell, the index of the one of the sheet's `sums` whose formula the cell
    /// shows.
    ///
    /// # Errors
    /// The errors of [`SheetWriter::row`].
    pub fn row_with(&mut self, cells: &[Value], picked: &[Option<usize>]) -> Result<(), XlsxError> {
        let XlsxWriter { file, formats, .. } = self.workbook;
        caught(|| {
            let written = self.tab.row(cells, picked, file, formats);
            written.map_err(|error| refused(&self.name, &error))
        })
    }

    /// Adds the sheet to the workbook. Returns its number of rows over all tabs, without headers.
    ///
    /// # Errors
    /// When Excel's limits forbid a column, filter or chart of the sheet.
    pub fn finish(self) -> Result<u64, XlsxError> {
        let Self {
            workbook,
            tab,
            name,
            position,
        } = self;
        workbook.bytes += tab.bytes;
        caught(|| {
            let ended = tab.end(&mut workbook.formats);
            let (tabs, written, rows) = ended.map_err(|error| refused(&name, &error))?;
            workbook.done.push((position, tabs));
            workbook.sheets.insert(name, written);
            Ok(rows)
        })
    }
}

/// Turns a panic into an error: the library panics where its scratch file cannot grow, as on a full disk.
fn caught<T>(write: impl FnOnce() -> Result<T, XlsxError>) -> Result<T, XlsxError> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|cause| {
        let reason = cause
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| cause.downcast_ref::<&str>().copied())
            .unwrap_or("the writer stopped");
        Err(XlsxError::Write(format!(
            "{reason}; check the free space of the disk"
        )))
    })
}

fn refused(sheet: &str, error: &rust_xlsxwriter::XlsxError) -> XlsxError {
    let reason = match error {
        rust_xlsxwriter::XlsxError::ParameterError(reason) => reason.clone(),
        error => error.to_string(),
    };
    XlsxError::Sheet {
        sheet: sheet.to_owned(),
        reason,
    }
}

fn failed(error: rust_xlsxwriter::XlsxError) -> XlsxError {
    XlsxError::Write(error.to_string())
}
