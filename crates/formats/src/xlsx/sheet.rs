//! Writing one sheet: header, rows, widths, filter and charts, on as many tabs as its rows need.

use std::collections::HashMap;

use rust_xlsxwriter::{
    Chart as Drawn, ChartAxis, ChartDataLabel, ChartDataLabelPosition, ChartFont, ChartFormat,
    ChartLine, ChartSolidFill, ChartType, Format, FormatAlign, FormatBorder, Workbook as File,
    Worksheet, XlsxError as Refused,
};
use serde_json::Value;

use super::cell::{Content, content, width};
use super::workbook::{Chart, ChartKind, Column, Sheet};

/// Rows that Excel has on a tab, without the header.
pub const ROWS: u32 = 1_048_575;
const BLUE: u32 = 0x002B_5C8A;
const PALE: u32 = 0x00E9_EFF5;
/// Widths in characters of columns that do not say theirs.
const NARROW: usize = 8;
const WIDE: usize = 60;
/// Rows that are looked at for the widths.
const LOOKED_AT: u32 = 1_000;
/// Rows that a chart shows at most.
const CHARTED: u32 = 40;

/// The formats of a workbook, made once each.
pub struct Formats {
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
pub struct Tab<'a> {
    sheet: &'a Sheet,
    columns: &'a [Column],
    streamed: bool,
    most: u32,
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
    pub written: u64,
    /// About how many bytes the cells take in the file, before it is compressed.
    pub bytes: u64,
}

impl<'a> Tab<'a> {
    /// Begins a sheet; `most` is how many rows a tab takes.
    pub fn begin(
        sheet: &'a Sheet,
        most: u32,
        file: &mut File,
        formats: &Formats,
    ) -> Result<Self, Refused> {
        let streamed = sheet.stream.is_some();
        let columns = sheet.columns.as_deref().unwrap_or_default();
        let mut tab = Self {
            sheet,
            columns,
            streamed,
            most: most.min(ROWS),
            current: worksheet(file, streamed, &sheet.name)?,
            name: sheet.name.clone(),
            row: 0,
            full: 0,
            widths: Vec::new(),
            below_zero: vec![false; columns.len()],
            written: 0,
            bytes: 0,
        };
        tab.header(formats)?;
        Ok(tab)
    }

    fn header(&mut self, formats: &Formats) -> Result<(), Refused> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let long = |c: &Column| {
            let wide = c.options.width.unwrap_or(WIDE as f64);
            c.header.chars().count() as f64 > wide - 2.0
        };
        if self.columns.iter().any(long) {
            // Two lines; not every reader finds the height by itself.
            self.current.set_row_height(0, 32)?;
        }
        for (at, column) in self.columns.iter().enumerate() {
            let shown = match content(&Value::String(column.header.clone())).0 {
                Content::Text(text) => text,
                _ => String::new(),
            };
            self.current
                .write_string_with_format(0, at as u16, &shown, &formats.header)?;
            // The arrow of the filter takes the place of three letters.
            self.look(at, shown.chars().count() + 3);
        }
        self.row = 1;
        Ok(())
    }

    fn look(&mut self, column: usize, wide: usize) {
        if self.widths.len() <= column {
            self.widths.resize(column + 1, 0);
        }
        self.widths[column] = self.widths[column].max(wide);
    }

    /// Writes a row; begins another tab if this one is full.
    pub fn row(
        &mut self,
        cells: &[Value],
        file: &mut File,
        formats: &mut Formats,
    ) -> Result<(), Refused> {
        let first = u32::from(!self.columns.is_empty());
        if self.row - first >= self.most {
            self.full += 1;
            let name = continued(&self.sheet.name, self.full + 1);
            let next = worksheet(file, self.streamed, &name)?;
            let done = std::mem::replace(&mut self.current, next);
            let done = self.finish(done)?;
            file.push_worksheet(done);
            self.name = name;
            self.row = 0;
            self.header(formats)?;
        }
        let title = self.sheet.sections
            && cells.first().is_some_and(|c| !c.is_null())
            && cells[1..].iter().all(Value::is_null);
        for (at, value) in cells.iter().enumerate() {
            let (shown, own) = content(value);
            let column = self.columns.get(at);
            if self.row <= LOOKED_AT && !title {
                self.look(at, width(&shown) + 1);
            }
            let wrap = column.is_some_and(|c| c.options.wrap);
            let asked = own.or_else(|| column.and_then(|c| c.options.format.as_deref()));
            let at = at as u16;
            match shown {
                Content::Empty => {}
                Content::Number(number) => {
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
                Content::Bool(truth) => {
                    self.bytes += 40;
                    self.current
                        .write_boolean_with_format(self.row, at, truth, &formats.plain)?;
                }
                Content::Text(text) => {
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
    pub fn end(mut self, file: &mut File) -> Result<u64, Refused> {
        let last = std::mem::take(&mut self.current);
        let last = self.finish(last)?;
        file.push_worksheet(last);
        Ok(self.written)
    }

    /// Widths, filter, print setup and charts of a tab whose rows are written.
    fn finish(&self, mut tab: Worksheet) -> Result<Worksheet, Refused> {
        for (at, wide) in self.widths.iter().enumerate() {
            let asked = self.columns.get(at).and_then(|c| c.options.width);
            let wide = asked.unwrap_or((*wide).clamp(NARROW, WIDE) as f64);
            tab.set_column_width(at as u16, wide.clamp(1.0, 255.0))?;
        }
        tab.set_landscape();
        tab.set_paper_size(9);
        tab.set_print_fit_to_pages(1, 0);
        tab.set_footer("&L&A&RPage &P of &N");
        let Some(last) = self.columns.len().checked_sub(1) else {
            return Ok(tab);
        };
        tab.set_freeze_panes(1, 0)?;
        tab.set_repeat_rows(0, 0)?;
        let end = self.row.saturating_sub(1);
        if !self.sheet.sections && end > 0 {
            tab.autofilter(0, 0, end, last as u16)?;
        }
        if self.full == 0 && end > 0 {
            let mut at = 1;
            for chart in self.sheet.chart.list() {
                let (drawn, height) = self.chart(chart, end);
                tab.insert_chart(at, last as u16 + 2, &drawn)?;
                // A row is 20 pixels high.
                at += height / 20 + 2;
            }
        }
        Ok(tab)
    }

    /// A chart of the rows up to `end`, and its height in pixels.
    fn chart(&self, chart: &Chart, end: u32) -> (Drawn, u32) {
        let column = |header: &str| {
            self.columns
                .iter()
                .position(|c| c.header == header)
                .unwrap_or(0) as u16
        };
        let (label, value) = (column(&chart.label), column(&chart.value));
        let shown = end.min(CHARTED);
        let mut title = chart.title.clone().unwrap_or_else(|| chart.value.clone());
        if shown < end {
            title = format!("{title} (first {shown} of {end} rows)");
        }
        let mut drawn = Drawn::new(match chart.kind {
            ChartKind::Bar => ChartType::Bar,
            ChartKind::Column => ChartType::Column,
            ChartKind::Pie => ChartType::Pie,
        });
        let mut font = ChartFont::new();
        font.set_size(11).set_bold();
        drawn.title().set_name(&title).set_font(&font);
        let format = self.columns[usize::from(value)]
            .options
            .format
            .clone()
            .unwrap_or_else(|| "General".to_owned());
        let mut labels = ChartDataLabel::new();
        labels.show_value().set_num_format(&format);
        let series = drawn
            .add_series()
            .set_name(&chart.value)
            .set_categories((self.name.as_str(), 1, label, shown, label))
            .set_values((self.name.as_str(), 1, value, shown, value));
        let height = match chart.kind {
            ChartKind::Pie => {
                series.set_data_label(&labels);
                320
            }
            ChartKind::Bar | ChartKind::Column => {
                labels.set_position(ChartDataLabelPosition::OutsideEnd);
                series.set_data_label(&labels).set_gap(45).set_format(
                    ChartFormat::new().set_solid_fill(ChartSolidFill::new().set_color(BLUE)),
                );
                drawn.legend().set_hidden();
                let mut line = ChartLine::new();
                line.set_color(0x00D9_DFE5);
                let begins = |axis: &mut ChartAxis| {
                    if !self.below_zero[usize::from(value)] {
                        axis.set_min(0);
                    }
                };
                // Of a bar chart the writer calls the axis of the labels `y`, of a column chart `x`.
                if chart.kind == ChartKind::Bar {
                    drawn.y_axis().set_reverse().set_major_gridlines(false);
                    drawn
                        .x_axis()
                        .set_hidden(true)
                        .set_major_gridlines_line(&line);
                    begins(drawn.x_axis());
                    90 + shown * 24
                } else {
                    drawn.y_axis().set_major_gridlines_line(&line);
                    begins(drawn.y_axis());
                    340
                }
            }
        };
        drawn.set_width(620).set_height(height);
        drawn.set_alt_text(format!("{title}, by {}", chart.label));
        (drawn, height)
    }
}

fn worksheet(file: &mut File, streamed: bool, name: &str) -> Result<Worksheet, Refused> {
    let mut tab = if streamed {
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
