//! Excel workbooks (Office Open XML, ECMA-376), written row by row; columns of an edited one are read by their headers.
//!
//! ```
//! use milepost_formats::xlsx::{ColumnLayout, SheetLayout, XlsxInfo, XlsxWriter};
//! use serde_json::json;
//!
//! let mut workbook = XlsxWriter::new(&XlsxInfo::default())?;
//! let column = |header: &str| ColumnLayout { header: header.to_owned(), ..ColumnLayout::default() };
//! let mut sheet = workbook.sheet(SheetLayout {
//!     name: "Walls".to_owned(),
//!     columns: vec![column("Name"), column("Volume [m³]")],
//!     ..SheetLayout::default()
//! })?;
//! sheet.row(&[json!("W-01"), json!({"value": 1.25, "format": "0.00"})])?;
//! assert_eq!(sheet.finish()?, 1);
//!
//! let mut bytes = std::io::Cursor::new(Vec::new());
//! workbook.save(&mut bytes)?;
//! assert!(bytes.get_ref().starts_with(b"PK"));
//! # Ok::<(), milepost_formats::xlsx::XlsxError>(())
//! ```
//!
//! A cell is a JSON value: numbers and booleans are typed cells, `null` and `""` an empty cell, an array of scalars its items
//! joined by `, ` (`null` as `–`), any other array or object its JSON text. `{"value": …, "format": "0.0%"}` is a value with a
//! number format of its own. No value is written as a formula: formulas come from layouts only ([`SumLayout`]), beside the number
//! that they give. Text longer than 32,767 UTF-16 units is cut and marked; control characters become U+FFFD; integers beyond 2⁵³
//! are written as text, since a cell would round them.

mod cell;
mod chart;
mod formula;
mod layout;
mod read;
mod sheet;
mod writer;

pub use cell::cell_text;
pub use layout::{
    ChartLayout, ChartStyle, ColumnLayout, ColumnRef, Condition, SheetLayout, SumLayout,
};
pub use read::{
    CellValue, SheetColumns, SheetRow, XlsxReadError, folded, parse_cell, read_columns, read_row,
};
pub use writer::{SheetWriter, XlsxError, XlsxInfo, XlsxWriter};
