//! Writing one sheet: header, rows, widths, filter and charts, on as many tabs as its rows need.

use std::collections::HashMap;

use rust_xlsxwriter::utility::column_number_to_name;
use rust_xlsxwriter::{
    DataValidation, Format, FormatAlign, FormatBorder, Formula, Workbook, Worksheet,
    XlsxError as Refused,
};
use serde_json::Value;

use super::cell::{CellContent, content, width};
use super::chart::{self, BLUE, Rows};
use super::formula::{Sheets, Sum, WrittenTabs, choices};
use super::layout::{ChartLayout, ColumnLayout, SheetLayout};

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
    total: Format,
    numbers: HashMap<String, Format>,
    totals: HashMap<String, Format>,
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
            total: left(&plain).set_bold().set_border_top(FormatBorder::Thin),
            plain,
            numbers: HashMap::new(),
            totals: HashMap::new(),
        }
    }
}

impl Formats {
    fn number(&mut self, format: &str) -> &Format {
        self.numbers
            .entry(format.to_owned())
            .or_insert_with(|| self.plain.clone().set_num_format(format))
    }

    fn total_number(&mut self, format: &str) -> &Format {
        self.totals.entry(format.to_owned()).or_insert_with(|| {
            let number = self.plain.clone().set_num_format(format);
            number.set_bold().set_border_top(FormatBorder::Thin)
        })
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
    /// Tabs that are full, with their rows.
    done: Vec<Worksheet>,
    names: Vec<(String, u32)>,
    /// For each column, the figure of another sheet that it shows, and the choices that it offers.
    sums: Vec<Option<Sum>>,
    /// The figures that a row picks for a cell.
    picked: Vec<Sum>,
    choices: Vec<Option<String>>,
    /// Columns with a value, and columns with a number.
    filled: Vec<bool>,
    counted: Vec<bool>,
    /// The sums of columns with a total.
    totals: Vec<Option<f64>>,
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
        sheets: &Sheets,
    ) -> Result<Self, Refused> {
        let own = &layout.columns;
        let refused = Refused::ParameterError;
        let sum = |column: &ColumnLayout| {
            let sum = column.sum.as_ref();
            sum.map(|sum| Sum::resolve(sum, own, sheets)).transpose()
        };
        let sums = own.iter().map(sum).collect::<Result<_, _>>();
        let picked = layout.sums.iter().map(|sum| Sum::resolve(sum, own, sheets));
        let picked = picked.collect::<Result<_, _>>().map_err(refused)?;
        let offered = own.iter().map(|column| match &column.choices {
            Some(of) => choices(of, sheets),
            None => Ok(None),
        });
        let offered = offered.collect::<Result<_, _>>().map_err(refused)?;
        let mut tab = Self {
            sums: sums.map_err(refused)?,
            picked,
            choices: offered,
            filled: vec![false; own.len()],
            counted: vec![false; own.len()],
            totals: vec![None; own.len()],
            rows_per_tab,
            current: worksheet(file, layout.is_streamed, &layout.name)?,
            name: layout.name.clone(),
            row: 0,
            done: Vec::new(),
            names: Vec::new(),
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

    fn first(&self) -> u32 {
        u32::from(!self.layout.columns.is_empty())
    }

    /// Writes a row; begins another tab if this one is full. `picked` names a figure of the layout for cells.
    pub(crate) fn row(
        &mut self,
        cells: &[Value],
        picked: &[Option<usize>],
        file: &mut Workbook,
        formats: &mut Formats,
    ) -> Result<(), Refused> {
        if self.row - self.first() >= self.rows_per_tab {
            let name = continued(&self.layout.name, self.done.len() + 2);
            let next = worksheet(file, self.layout.is_streamed, &name)?;
            let done = std::mem::replace(&mut self.current, next);
            let done = self.finish(done)?;
            self.done.push(done);
            let rows = self.row - self.first();
            self.names
                .push((std::mem::replace(&mut self.name, name), rows));
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
            if shown != CellContent::Empty
                && let Some(filled) = self.filled.get_mut(at)
            {
                *filled = true;
            }
            let at = at as u16;
            match shown {
                CellContent::Empty => {}
                CellContent::Number(number) => {
                    self.bytes += 40;
                    if let Some(counted) = self.counted.get_mut(usize::from(at)) {
                        *counted = true;
                    }
                    if number < 0.0
                        && let Some(below) = self.below_zero.get_mut(usize::from(at))
                    {
                        *below = true;
                    }
                    let format = match asked {
                        Some(format) => formats.number(format),
                        None => &formats.plain,
                    };
                    let place = usize::from(at);
                    if column.is_some_and(|column| column.has_total) {
                        *self.totals[place].get_or_insert(0.0) += number;
                    }
                    let named = picked.get(place).copied().flatten();
                    let sum = match named {
                        Some(named) => self.picked.get(named),
                        None => self.sums.get(place).and_then(Option::as_ref),
                    };
                    match sum.and_then(|sum| sum.in_row(self.row, cells)) {
                        Some(formula) => {
                            let formula = Formula::new(formula).set_result(number.to_string());
                            self.current
                                .write_formula_with_format(self.row, at, formula, format)?;
                        }
                        None => {
                            self.current
                                .write_number_with_format(self.row, at, number, format)?;
                        }
                    }
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

    /// Writes the totals below the rows. They follow the filter, as those of a table do.
    fn total(&mut self, label: &str, formats: &mut Formats) -> Result<(), Refused> {
        let last = self.row.saturating_sub(1);
        self.current
            .write_string_with_format(self.row, 0, label, &formats.total)?;
        for at in 1..self.layout.columns.len() {
            let column = at as u16;
            let Some(total) = self.totals[at] else {
                self.current.write_blank(self.row, column, &formats.total)?;
                continue;
            };
            let format = self.layout.columns[at].format.as_deref();
            let format = match format {
                Some(format) => formats.total_number(format),
                None => formats.total_number("General"),
            };
            let letters = column_number_to_name(column);
            let formula = format!("=SUBTOTAL(9,{letters}2:{letters}{})", last + 1);
            let formula = Formula::new(formula).set_result(total.to_string());
            self.current
                .write_formula_with_format(self.row, column, formula, format)?;
        }
        Ok(())
    }

    /// Ends the sheet. Returns its tabs, their names and rows, and the number of all rows.
    pub(crate) fn end(
        mut self,
        formats: &mut Formats,
    ) -> Result<(Vec<Worksheet>, WrittenTabs, u64), Refused> {
        if let Some(label) = self.layout.total.clone()
            && self.done.is_empty()
            && self.row > 1
            && !self.layout.columns.is_empty()
        {
            self.total(&label, formats)?;
        }
        let last = std::mem::take(&mut self.current);
        let last = self.finish(last)?;
        self.done.push(last);
        self.names
            .push((self.name.clone(), self.row - self.first()));
        let tabs = WrittenTabs::new(&self.layout.columns, self.names);
        Ok((self.done, tabs, self.written))
    }

    /// Widths, filter, print setup and charts of a tab whose rows are written.
    fn finish(&self, mut tab: Worksheet) -> Result<Worksheet, Refused> {
        for (at, wide) in self.widths.iter().enumerate() {
            let asked = self.layout.columns.get(at).and_then(|c| c.width);
            let wide = asked.unwrap_or((*wide).clamp(NARROW, WIDE) as f64);
            tab.set_column_width(at as u16, wide.clamp(1.0, 255.0))?;
            let is_empty = self.filled.get(at).is_some_and(|filled| !filled);
            if is_empty && self.layout.columns[at].hide_empty {
                tab.set_column_hidden(at as u16)?;
            }
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
        for (at, offered) in self.choices.iter().enumerate() {
            let (Some(list), true) = (offered, end > 0) else {
                continue;
            };
            let list = DataValidation::new().allow_list_formula(Formula::new(list));
            tab.add_data_validation(1, at as u16, end, at as u16, &list)?;
        }
        if self.done.is_empty() && end > 0 {
            let mut at = 1;
            let rows = Rows {
                tab: &self.name,
                columns: &self.layout.columns,
                below_zero: &self.below_zero,
                end,
            };
            let has_rows = |chart: &&ChartLayout| {
                let columns = self.layout.columns.iter().zip(&self.counted);
                let mut counted = columns.filter(|(column, _)| column.header == chart.value);
                counted.any(|(_, counted)| *counted)
            };
            for layout in self.layout.charts.iter().filter(has_rows) {
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

/// Returns the name of the nth tab of a sheet, within the 31 characters that Excel allows.
fn continued(name: &str, number: usize) -> String {
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
