//! Reads columns of a workbook that a person edited, by their headers.
//!
//! The workbook is a foreign file: read it in a process with limits of memory and time.

mod excerpt;
mod row;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

use calamine::XlsxCellFormulaMetadataRecord as SheetCell;
use calamine::{DataRef, Reader as _, Xlsx, XlsxCellReader, XlsxError as CalamineError};
pub use row::{SheetRow, parse_cell, read_row};
use serde::{Deserialize, Serialize};

/// The most bytes of all files in a workbook together, unpacked.
const UNPACKED: u64 = 4 << 30;

/// The first rows, one of which has the headers.
const HEADER_ROWS: u32 = 20;

/// The rows of a sheet.
const ROWS: u32 = 1_048_576;

/// The columns of a sheet.
const COLUMNS: u32 = 16_384;

/// The most cells that are returned.
const CELLS: usize = 1_000_000;

/// The longest text of a cell, in UTF-16 units, as in Excel.
const LONGEST: usize = 32_767;

/// The rows of a sheet, with only the requested columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SheetColumns {
    /// The letters of each column, such as `AB`.
    pub letters: Vec<String>,
    /// The rows below the header that have a value in one of the columns, by their numbers in the sheet, from 1. Each has a cell
    /// for each column.
    pub rows: BTreeMap<u32, Vec<CellValue>>,
}

/// The value of a cell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum CellValue {
    /// Nothing, or only blanks.
    #[default]
    Empty,
    /// Text without blanks around it.
    Text(String),
    /// A number, typed or computed.
    Number(f64),
    /// True or false.
    Bool(bool),
    /// A date, a time or a duration.
    Date,
    /// An error such as `#N/A`.
    Error(String),
    /// A formula that the program that saved the workbook did not compute.
    Formula,
}

/// Why columns cannot be read from a workbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub enum XlsxReadError {
    /// The file is something else.
    #[error("it is not an Excel workbook: {0}")]
    NoWorkbook(String),
    /// The file is encrypted.
    #[error("it is protected by a password")]
    Password,
    /// The workbook is larger than Excel or LibreOffice can open.
    #[error("it is too large: {0}")]
    TooLarge(String),
    /// There is no such sheet.
    #[error("there is no sheet `{sheet}`; it has {}", listed(found))]
    NoSheet {
        /// The sheet.
        sheet: String,
        /// The sheets that there are.
        found: Vec<String>,
    },
    /// A column is missing or occurs twice.
    #[error("{sheet}: {problem} `{column}` in the header; found {}", listed(found))]
    Column {
        /// The sheet.
        sheet: String,
        /// `missing column`, or `duplicate column`.
        problem: String,
        /// The column.
        column: String,
        /// The headers that there are.
        found: Vec<String>,
    },
    /// Cells of the columns are merged, so that it is not clear to which row a value belongs.
    #[error("{sheet}!{cells}: the cells are merged; split them, so that each row has its own")]
    Merged {
        /// The sheet.
        sheet: String,
        /// The first and the last cell.
        cells: String,
    },
    /// The sheet is damaged.
    #[error("{sheet}: it cannot be read: {reason}")]
    Broken {
        /// The sheet.
        sheet: String,
        /// The error of the reader.
        reason: String,
    },
}

/// Reads the columns of a sheet that have these headers, wherever they are. The headers are in one of the first 20 rows; case, line
/// breaks and repeated blanks do not matter.
///
/// # Errors
/// When the file is not a workbook, or the sheet is missing, damaged or too large, lacks a column, or has merged cells in the
/// columns.
pub fn read_columns<R: Read + Seek>(
    mut file: R,
    sheet: &str,
    headers: &[String],
) -> Result<SheetColumns, XlsxReadError> {
    check_size(&mut file)?;
    guarded(sheet, |place| {
        let mut workbook = open(file, sheet)?;
        let mut reading = Reading::new(sheet, headers);
        let mut cells = workbook.worksheet_cells_reader(sheet);
        while let Some(cell) = next_cell(&mut cells, sheet, place)? {
            let value = value_of(cell.value, cell.formula.is_some(), sheet, cell.pos)?;
            reading.add(cell.pos, value)?;
        }
        drop(cells);
        let merged = workbook.merge_cells_by_sheet_name(sheet);
        let merged = merged.map_err(|error| broken(sheet, place, &error))?;
        let columns = reading.finish()?;
        for area in merged {
            let is_read = |column: u32| (area.start.1..=area.end.1).contains(&column);
            if area.end.0 > columns.header && columns.places.iter().copied().any(is_read) {
                return Err(XlsxReadError::Merged {
                    sheet: sheet.to_owned(),
                    cells: format!("{}:{}", cell_name(area.start), cell_name(area.end)),
                });
            }
        }
        Ok(SheetColumns {
            letters: columns.places.iter().map(|&place| letters(place)).collect(),
            rows: columns.rows,
        })
    })
}

/// The last cell that was read: its row and column, from 0.
type LastCell = Cell<Option<(u32, u32)>>;

/// Reads a sheet. The reader of a damaged file may panic, for example at a number that is out of range.
fn guarded<T>(
    sheet: &str,
    read: impl FnOnce(&LastCell) -> Result<T, XlsxReadError>,
) -> Result<T, XlsxReadError> {
    let last = LastCell::default();
    let done = catch_unwind(AssertUnwindSafe(|| read(&last)));
    done.unwrap_or_else(|_| Err(broken(sheet, &last, &"a number in it is out of range")))
}

fn broken(sheet: &str, last: &LastCell, reason: &dyn fmt::Display) -> XlsxReadError {
    let after = last.get().map(cell_name);
    let after = after.map_or_else(String::new, |cell| format!(", after cell {cell}"));
    XlsxReadError::Broken {
        sheet: sheet.to_owned(),
        reason: format!("{reason}{after}"),
    }
}

/// Opens a workbook that has this sheet.
fn open<R: Read + Seek>(file: R, sheet: &str) -> Result<Xlsx<R>, XlsxReadError> {
    let workbook = Xlsx::new(file).map_err(|error| match error {
        CalamineError::Password => XlsxReadError::Password,
        other => XlsxReadError::NoWorkbook(other.to_string()),
    })?;
    let found = workbook.sheet_names();
    if found.iter().any(|name| name == sheet) {
        return Ok(workbook);
    }
    let sheet = sheet.to_owned();
    Err(XlsxReadError::NoSheet { sheet, found })
}

/// Returns the next cell of a sheet.
fn next_cell<'a, R: Read + Seek>(
    cells: &mut Result<XlsxCellReader<'a, R>, CalamineError>,
    sheet: &str,
    last: &LastCell,
) -> Result<Option<SheetCell<'a>>, XlsxReadError> {
    let cells = cells.as_mut().map_err(|error| broken(sheet, last, error))?;
    let cell = cells.next_cell_with_formula_metadata();
    let cell = cell.map_err(|error| broken(sheet, last, &error))?;
    if let Some(cell) = &cell {
        if cell.pos.0 >= ROWS || cell.pos.1 >= COLUMNS {
            let name = cell_name(cell.pos);
            let reason = format!("cell {name} is outside of a sheet, which ends at XFD{ROWS}");
            return Err(broken(sheet, last, &reason));
        }
        last.set(Some(cell.pos));
    }
    Ok(cell)
}

/// Refuses a file that unpacks to more than a person edits.
fn check_size<R: Read + Seek>(file: &mut R) -> Result<(), XlsxReadError> {
    let no_workbook = |error: zip::result::ZipError| XlsxReadError::NoWorkbook(error.to_string());
    let mut archive = zip::ZipArchive::new(&mut *file).map_err(no_workbook)?;
    let mut unpacked = 0_u64;
    for index in 0..archive.len() {
        let size = archive.by_index_raw(index).map_err(no_workbook)?.size();
        unpacked = unpacked.saturating_add(size);
    }
    if unpacked > UNPACKED {
        let message = format!("its unpacked size is {unpacked} bytes; the maximum is {UNPACKED}");
        return Err(XlsxReadError::TooLarge(message));
    }
    file.rewind()
        .map_err(|error| XlsxReadError::NoWorkbook(error.to_string()))
}

fn value_of(
    data: DataRef<'_>,
    is_formula: bool,
    sheet: &str,
    place: (u32, u32),
) -> Result<CellValue, XlsxReadError> {
    let text = |text: &str| {
        if text.encode_utf16().count() > LONGEST {
            let cell = cell_name(place);
            let message = format!("the text of {sheet}!{cell} is longer than {LONGEST} characters");
            return Err(XlsxReadError::TooLarge(message));
        }
        let text = text.trim();
        Ok(match text {
            "" => CellValue::Empty,
            text => CellValue::Text(text.to_owned()),
        })
    };
    Ok(match data {
        DataRef::Empty if is_formula => CellValue::Formula,
        DataRef::Empty => CellValue::Empty,
        DataRef::Int(number) => CellValue::Number(number as f64),
        DataRef::Float(number) => CellValue::Number(number),
        DataRef::String(found) => text(&found)?,
        DataRef::SharedString(found) => text(found)?,
        DataRef::Bool(is) => CellValue::Bool(is),
        DataRef::DateTime(_) | DataRef::DateTimeIso(_) | DataRef::DurationIso(_) => CellValue::Date,
        DataRef::Error(error) => CellValue::Error(error.to_string()),
    })
}

/// A sheet that is being read.
struct Reading<'a> {
    sheet: &'a str,
    headers: &'a [String],
    /// The row of the headers.
    header: Option<u32>,
    /// The column of each header.
    places: Vec<Option<u32>>,
    /// The texts of the row of the headers; before it is known, those of the first row.
    found: Vec<String>,
    rows: BTreeMap<u32, Vec<CellValue>>,
    count: usize,
}

/// A sheet that was read.
struct ReadColumns {
    header: u32,
    places: Vec<u32>,
    rows: BTreeMap<u32, Vec<CellValue>>,
}

impl<'a> Reading<'a> {
    fn new(sheet: &'a str, headers: &'a [String]) -> Self {
        Self {
            sheet,
            headers,
            header: None,
            places: vec![None; headers.len()],
            found: Vec::new(),
            rows: BTreeMap::new(),
            count: 0,
        }
    }

    fn add(&mut self, (row, column): (u32, u32), value: CellValue) -> Result<(), XlsxReadError> {
        match self.header {
            Some(header) if row > header => {
                let place = self.places.iter().position(|place| *place == Some(column));
                if let Some(place) = place
                    && value != CellValue::Empty
                {
                    let of_row = || vec![CellValue::Empty; self.headers.len()];
                    if !self.rows.contains_key(&(row + 1)) {
                        self.count += self.headers.len();
                    }
                    self.rows.entry(row + 1).or_insert_with(of_row)[place] = value;
                }
                if self.count > CELLS {
                    let message = format!("{} has more than {CELLS} cells to read", self.sheet);
                    return Err(XlsxReadError::TooLarge(message));
                }
            }
            Some(header) if row < header => {}
            _ => self.add_header((row, column), value)?,
        }
        Ok(())
    }

    fn add_header(&mut self, place: (u32, u32), value: CellValue) -> Result<(), XlsxReadError> {
        let (row, column) = place;
        let CellValue::Text(text) = value else {
            return Ok(());
        };
        let exact = self.headers.iter().position(|header| *header == text);
        let at = exact.or_else(|| {
            let is_same = |header: &String| folded(header) == folded(&text);
            self.headers.iter().position(is_same)
        });
        if self.header.is_none() {
            if row >= HEADER_ROWS {
                return Ok(());
            }
            if at.is_some() {
                self.header = Some(row);
            }
        }
        if let Some(at) = at
            && self.places[at].replace(column).is_some()
        {
            return Err(self.wrong("duplicate column", &text));
        }
        if self.found.len() < 200 {
            self.found.push(text);
        }
        Ok(())
    }

    fn wrong(&self, problem: &str, column: &str) -> XlsxReadError {
        XlsxReadError::Column {
            sheet: self.sheet.to_owned(),
            problem: problem.to_owned(),
            column: column.to_owned(),
            found: self.found.clone(),
        }
    }

    fn finish(self) -> Result<ReadColumns, XlsxReadError> {
        let places: Option<Vec<u32>> = self.places.iter().copied().collect();
        let (Some(header), Some(places)) = (self.header, places) else {
            let missing = self.places.iter().position(Option::is_none);
            let missing = missing.and_then(|at| self.headers.get(at));
            return Err(self.wrong(
                "missing column",
                missing.map(String::as_str).unwrap_or_default(),
            ));
        };
        Ok(ReadColumns {
            header,
            places,
            rows: self.rows,
        })
    }
}

/// Returns a text in lower case with single blanks, as headers and labels are compared.
pub fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Returns the name of a cell, such as `M12`, from its row and column, from 0.
fn cell_name((row, column): (u32, u32)) -> String {
    format!("{}{}", letters(column), u64::from(row) + 1)
}

/// Returns the letters of a column, from 0.
fn letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = u64::from(column) + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(b'A' + (rest % 26) as u8);
        rest /= 26;
    }
    letters.reverse();
    String::from_utf8_lossy(&letters).into_owned()
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(40).map(|name| {
        let start: String = name.chars().take(60).collect();
        format!("`{start}`")
    });
    match names {
        [] => "none".to_owned(),
        names if names.len() > 40 => {
            format!("{}, …", shown.collect::<Vec<_>>().join(", "))
        }
        _ => shown.collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;
