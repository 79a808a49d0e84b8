//! Charts beside the rows of a sheet.

use rust_xlsxwriter::{
    Chart, ChartAxis, ChartDataLabel, ChartDataLabelPosition, ChartFont, ChartFormat, ChartLine,
    ChartSolidFill, ChartType,
};

use super::layout::{ChartLayout, ChartStyle, ColumnLayout};

/// The colour of bars and of the titles of sections.
pub(crate) const BLUE: u32 = 0x002B_5C8A;

/// Rows that a chart shows at most.
const MAX_ROWS: u32 = 40;

/// The rows that a chart shows.
pub(crate) struct Rows<'a> {
    /// The name of the tab.
    pub(crate) tab: &'a str,
    pub(crate) columns: &'a [ColumnLayout],
    /// For each column, whether it holds a number below zero: axes then do not begin at zero.
    pub(crate) below_zero: &'a [bool],
    /// The last row of the tab.
    pub(crate) end: u32,
}

/// Draws a chart. Returns it with its height in pixels.
pub(crate) fn draw(chart: &ChartLayout, rows: &Rows<'_>) -> (Chart, u32) {
    let column = |header: &str| {
        rows.columns
            .iter()
            .position(|c| c.header == header)
            .unwrap_or(0) as u16
    };
    let (label, value) = (column(&chart.label), column(&chart.value));
    let shown = rows.end.min(MAX_ROWS);
    let mut title = chart.title.clone().unwrap_or_else(|| chart.value.clone());
    if shown < rows.end {
        title = format!("{title} (first {shown} of {} rows)", rows.end);
    }
    let mut drawn = Chart::new(match chart.style {
        ChartStyle::Bar => ChartType::Bar,
        ChartStyle::Column => ChartType::Column,
        ChartStyle::Pie => ChartType::Pie,
    });
    let mut font = ChartFont::new();
    font.set_size(11).set_bold();
    drawn.title().set_name(&title).set_font(&font);
    let format = rows.columns[usize::from(value)]
        .format
        .clone()
        .unwrap_or_else(|| "General".to_owned());
    let mut labels = ChartDataLabel::new();
    labels.show_value().set_num_format(&format);
    let series = drawn
        .add_series()
        .set_name(&chart.value)
        .set_categories((rows.tab, 1, label, shown, label))
        .set_values((rows.tab, 1, value, shown, value));
    let height = match chart.style {
        ChartStyle::Pie => {
            series.set_data_label(&labels);
            320
        }
        ChartStyle::Bar | ChartStyle::Column => {
            labels.set_position(ChartDataLabelPosition::OutsideEnd);
            series.set_data_label(&labels).set_gap(45).set_format(
                ChartFormat::new().set_solid_fill(ChartSolidFill::new().set_color(BLUE)),
            );
            drawn.legend().set_hidden();
            let mut line = ChartLine::new();
            line.set_color(0x00D9_DFE5);
            let begins = |axis: &mut ChartAxis| {
                if !rows.below_zero[usize::from(value)] {
                    axis.set_min(0);
                }
            };
            // Of a bar chart the writer calls the axis of the labels `y`, of a column chart `x`.
            if chart.style == ChartStyle::Bar {
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
