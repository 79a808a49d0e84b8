//! Writing one sheet: header, rows, widths, filter and charts, on as many tabs as its rows need.

use std::collections::HashMap;

use rust_xlsxwriter::{
    Format, FormatAlign, FormatBorder, Workbook, Worksheet, XlsxError as Refused,
};
use serde_json::Value;

use super::cell::{CellContent, content, width};
use super::chart::{self, BLUE, Rows};
use super::layout::{ColumnLayout, SheetLayout};

/// Rows that Excel has on a tab, without the header.
pub(crate) const ROWS: u32 = 1_048_575;
const PALE: u32 = 0x00E9_EFF5;
/// Widths in characters of columns that do not say theirs.
const NARROW: usize = 8;
const WIDE: usize = 60;
/// Rows that are looked at for the widths.
const LOOKED_AT: u32 = 1_000;

/// The formats of a workbook, made once each.
pub(crate) struct Formats {
    header: Format,
    section: Format,
    plain: Format,
    text: Format,
    wrapped: Format,
    numbers: HashMap<String, Format>,
}

impl Default for Formats {
    fn default() -> Self {
        let plain = Format::new().set_align(FormatAlign::Top);
        // A little air between a number and the text of the next column.
        let left = |format: &Format| format.clone().set_align(FormatAlign::Left).set_indent(1);
        Self {
            header: left(&Format::new())
                .set_bold()
                .set_text_wrap()
                .set_align(FormatAlign::VerticalCenter)
                .set_background_color(PALE)
                .set_border_bottom(FormatBorder::Thin),
            section: left(&Format::new()).set_bold().set_font_color(BLUE),
            text: left(&plain),
            wrapped: left(&plain).set_text_wrap(),
            plain,
            numbers: HashMap::new(),
        }
    }
}

impl Formats {
    fn number(&mut self, format: &str) -> &Format {
        self.numbers
            .entry(format.to_owned())
            .or_insert_with(|| self.plain.clone().set_num_format(format))
    }
}

/// A sheet while its rows are written.
#[expect(clippy::struct_field_names, reason = "it is the option of that name")]
pub(crate) struct Tab {
    layout: SheetLayout,
    rows_per_tab: u32,
    current: Worksheet,
    name: String,
    /// The next row of the tab.
    row: u32,
    /// Tabs that are full.
    full: u32,
    widths: Vec<usize>,
    /// Columns with a number below zero: their charts do not begin there.
    below_zero: Vec<bool>,
    /// Rows written, over all tabs.
    pub(crate) written: u64,
    /// About how many bytes the cells take in the file, before it is compressed.
    pub(crate) bytes: u64,
}

impl Tab {
    pub(crate) fn begin(
        layout: SheetLayout,
        rows_per_tab: u32,
        file: &mut Workbook,
        formats: &Formats,
    ) -> Result<Self, Refused> {
        let mut tab = Self {
            rows_per_tab,
            current: worksheet(file, layout.is_streamed, &layout.name)?,
            name: layout.name.clone(),
            row: 0,
            full: 0,
            widths: Vec::new(),
            below_zero: vec![false; layout.columns.len()],
            written: 0,
            bytes: 0,
            layout,
        };
        tab.header(formats)?;
        Ok(tab)
    }

    fn header(&mut self, formats: &Formats) -> Result<(), Refused> {
        if self.layout.columns.is_empty() {
            return Ok(());
        }
        let long = |c: &ColumnLayout| {
            let wide = c.width.unwrap_or(WIDE as f64);
            c.header.chars().count() as f64 > wide - 2.0
        };
        if self.layout.columns.iter().any(long) {
            // Two lines; not every reader finds the height by itself.
            self.current.set_row_height(0, 32)?;
        }
        for at in 0..self.layout.columns.len() {
            let header = self.layout.columns[at].header.clone();
            let shown = match content(&Value::String(header)).0 {
                CellContent::Text(text) => text,
                _ => String::new(),
            };
            self.current
                .write_string_with_format(0, at as u16, &shown, &formats.header)?;
            // The arrow of the filter takes the place of three letters.
            self.widen(at, shown.chars().count() + 3);
        }
        self.row = 1;
        Ok(())
    }

    fn widen(&mut self, column: usize, wide: usize) {
        if self.widths.len() <= column {
            self.widths.resize(column + 1, 0);
        }
        self.widths[column] = self.widths[column].max(wide);
    }

    /// Writes a row; begins another tab if this one is full.
    pub(crate) fn row(
        &mut self,
        cells: &[Value],
        file: &mut Workbook,
        formats: &mut Formats,
    ) -> Result<(), Refused> {
        let first = u32::from(!self.layout.columns.is_empty());
        if self.row - first >= self.rows_per_tab {
            self.full += 1;
            let name = continued(&self.layout.name, self.full + 1);
            let next = worksheet(file, self.layout.is_streamed, &name)?;
            let done = std::mem::replace(&mut self.current, next);
            let done = self.finish(done)?;
            file.push_worksheet(done);
            self.name = name;
            self.row = 0;
            self.header(formats)?;
        }
        let title = self.layout.has_sections
            && cells.first().is_some_and(|c| !c.is_null())
            && cells[1..].iter().all(Value::is_null);
        for (at, value) in cells.iter().enumerate() {
            let (shown, own) = content(value);
            if self.row <= LOOKED_AT && !title {
                self.widen(at, width(&shown) + 1);
            }
            let column = self.layout.columns.get(at);
            let wrap = column.is_some_and(|c| c.wrap);
            let asked = own.or_else(|| column.and_then(|c| c.format.as_deref()));
            let at = at as u16;
            match shown {
                CellContent::Empty => {}
                CellContent::Number(number) => {
                    self.bytes += 40;
                    if number < 0.0
                        && let Some(below) = self.below_zero.get_mut(usize::from(at))
                    {
                        *below = true;
                    }
                    let format = match asked {
                        Some(format) => formats.number(format),
                        None => &formats.plain,
                    };
                    self.current
                        .write_number_with_format(self.row, at, number, format)?;
                }
                CellContent::Bool(truth) => {
                    self.bytes += 40;
                    self.current
                        .write_boolean_with_format(self.row, at, truth, &formats.plain)?;
                }
                CellContent::Text(text) => {
                    self.bytes += 64 + text.len() as u64;
                    let format = match (title, wrap) {
                        (true, _) => &formats.section,
                        (false, true) => &formats.wrapped,
                        (false, false) => &formats.text,
                    };
                    self.current
                        .write_string_with_format(self.row, at, text, format)?;
                }
            }
        }
        self.row += 1;
        self.written += 1;
        Ok(())
    }

    /// Ends the sheet and hangs it into the file.
    pub(crate) fn end(mut self, file: &mut Workbook) -> Result<u64, Refused> {
        let last = std::mem::take(&mut self.current);
        let last = self.finish(last)?;
        file.push_worksheet(last);
        Ok(self.written)
    }

    /// Widths, filter, print setup and charts of a tab whose rows are written.
    fn finish(&self, mut tab: Worksheet) -> Result<Worksheet, Refused> {
        for (at, wide) in self.widths.iter().enumerate() {
            let asked = self.layout.columns.get(at).and_then(|c| c.width);
            let wide = asked.unwrap_or((*wide).clamp(NARROW, WIDE) as f64);
            tab.set_column_width(at as u16, wide.clamp(1.0, 255.0))?;
        }
        tab.set_landscape();
        tab.set_paper_size(9);
        tab.set_print_fit_to_pages(1, 0);
        tab.set_footer("&L&A&RPage &P of &N");
        let Some(last) = self.layout.columns.len().checked_sub(1) else {
            return Ok(tab);
        };
        tab.set_freeze_panes(1, 0)?;
        tab.set_repeat_rows(0, 0)?;
        let end = self.row.saturating_sub(1);
        if !self.layout.has_sections && end > 0 {
            tab.autofilter(0, 0, end, last as u16)?;
        }
        if self.full == 0 && end > 0 {
            let mut at = 1;
            let rows = Rows {
                tab: &self.name,
                columns: &self.layout.columns,
                below_zero: &self.below_zero,
                end,
            };
            for layout in &self.layout.charts {
                let (drawn, height) = chart::draw(layout, &rows);
                tab.insert_chart(at, last as u16 + 2, &drawn)?;
                // A row is 20 pixels high.
                at += height / 20 + 2;
            }
        }
        Ok(tab)
    }
}

fn worksheet(file: &mut Workbook, is_streamed: bool, name: &str) -> Result<Worksheet, Refused> {
    let mut tab = if is_streamed {
        file.new_worksheet_with_constant_memory()?
    } else {
        Worksheet::new()
    };
    tab.set_name(name)?;
    Ok(tab)
}

/// The name of the nth tab of a sheet, within the 31 characters that Excel allows.
fn continued(name: &str, number: u32) -> String {
    let tail = format!(" {number}");
    let mut room = 31 - tail.len();
    let head: String = name
        .chars()
        .take_while(|c| {
            let fits = c.len_utf16() <= room;
            room -= c.len_utf16().min(room);
            fits
        })
        .collect();
    format!("{}{tail}", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::continued;

    #[test]
    fn names_of_further_tabs_fit() {
        assert_eq!(continued("Elements", 2), "Elements 2");
        let long = continued(&"x".repeat(31), 12);
        assert_eq!((long.len(), &long[28..]), (31, " 12"));
    }
}
