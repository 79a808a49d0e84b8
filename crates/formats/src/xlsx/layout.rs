//! How sheets, columns and charts look.

/// A sheet: its name, columns, and what stands beside its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SheetLayout {
    /// The name on the tab: 1 to 31 UTF-16 units, without `[ ] : * ? / \`.
    pub name: String,
    /// The columns. Without any, the sheet has no header row.
    pub columns: Vec<ColumnLayout>,
    /// A row with a value in its first cell only is the title of a section; the sheet has no filter.
    pub has_sections: bool,
    /// Charts beside the rows, one below the other. A sheet that fills more than one tab has none.
    pub charts: Vec<ChartLayout>,
    /// Keeps the rows on disk while the sheet grows, so that memory does not depend on their number.
    pub is_streamed: bool,
}

/// A column of a sheet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnLayout {
    /// The text of its header cell.
    pub header: String,
    /// Width in characters; `None` fits the header and the first 1,000 rows.
    pub width: Option<f64>,
    /// Number format of Excel, such as `0.00` or `0.0%`.
    pub format: Option<String>,
    /// Wraps long text inside the cell.
    pub wrap: bool,
}

/// A chart of at most the first 40 rows of a sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLayout {
    /// How the rows are drawn.
    pub style: ChartStyle,
    /// Header of the column with the labels.
    pub label: String,
    /// Header of the column with the values.
    pub value: String,
    /// The title; `None` shows the header of the values.
    pub title: Option<String>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartStyle {
    /// Horizontal bars, the first row on top.
    Bar,
    /// Vertical bars.
    Column,
    /// Slices of a pie.
    Pie,
}
