//! Reads one row of a sheet, with the headers above it.

use super::excerpt::excerpt;
use super::{
    CellValue, HEADER_ROWS, ROWS, XlsxReadError, check_size, guarded, letters, next_cell, open,
    value_of,
};
use calamine::XlsxFormulaMetadata as Formula;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// A row of a sheet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SheetRow {
    /// The headers by the letters of their columns. The first row with texts in two columns has the headers.
    pub headers: BTreeMap<String, String>,
    /// The cells of the row that are not empty, by the letters of their columns.
    pub cells: BTreeMap<String, CellValue>,
    /// The formulas of its cells, as the workbook has them, by the letters of their columns. A formula that is shared with another row
    /// is left out.
    pub formulas: BTreeMap<String, String>,
}

/// Reads a row, by its number in the sheet from 1. Rows after it are not read.
///
/// # Errors
/// When the file is not a workbook, or the sheet is missing, damaged or too large.
pub fn read_row<R: Read + Seek>(
    mut file: R,
    sheet: &str,
    row: u32,
) -> Result<SheetRow, XlsxReadError> {
    check_size(&mut file)?;
    match excerpt(&mut file, sheet, row) {
        Some(excerpt) => read_row_of(excerpt, sheet, row),
        None => read_row_of(file, sheet, row),
    }
}

fn read_row_of<R: Read + Seek>(file: R, sheet: &str, row: u32) -> Result<SheetRow, XlsxReadError> {
    let mut above: BTreeMap<u32, BTreeMap<String, String>> = BTreeMap::new();
    let mut read = SheetRow::default();
    guarded(sheet, |place| {
        let mut workbook = open(file, sheet)?;
        let mut cells = workbook.worksheet_cells_reader(sheet);
        while let Some(cell) = next_cell(&mut cells, sheet, place)? {
            let (at, column) = cell.pos;
            if at >= row {
                break;
            }
            let is_row = at + 1 == row;
            if !is_row && at >= HEADER_ROWS {
                continue;
            }
            let value = value_of(cell.value, cell.formula.is_some(), sheet, cell.pos)?;
            if is_row
                && let Some(Formula::Normal { formula } | Formula::Shared { formula, .. }) =
                    cell.formula
            {
                read.formulas.insert(letters(column), formula);
            }
            match value {
                CellValue::Empty => {}
                value if is_row => {
                    read.cells.insert(letters(column), value);
                }
                CellValue::Text(text) => {
                    above.entry(at).or_default().insert(letters(column), text);
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    let mut rows = above.into_values();
    read.headers = rows.find(|row| row.len() > 1).unwrap_or_default();
    Ok(read)
}

/// Splits a name such as `Elements!G12` or `'Element types'!A1` into sheet, letters of the column and number of the row; `None` if
/// it is not a name of a cell.
pub fn parse_cell(text: &str) -> Option<(String, String, u32)> {
    let (sheet, cell) = text.rsplit_once('!')?;
    let sheet = match sheet
        .strip_prefix('\'')
        .and_then(|it| it.strip_suffix('\''))
    {
        Some(quoted) => quoted.replace("''", "'"),
        None => sheet.to_owned(),
    };
    let cell = cell.replace('$', "").to_ascii_uppercase();
    let digits = cell.find(|char: char| char.is_ascii_digit())?;
    let (column, row) = cell.split_at(digits);
    let row: u32 = row.parse().ok()?;
    let is_column =
        (1..=3).contains(&column.len()) && column.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_cell = is_column && (1..=ROWS).contains(&row) && !sheet.is_empty();
    is_cell.then(|| (sheet, column.to_owned(), row))
}
