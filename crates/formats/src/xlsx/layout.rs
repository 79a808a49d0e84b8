//! How sheets, columns and charts look.

/// A sheet: its name, its columns, and the content beside its rows.
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
    /// The first cell of a last row with the totals of the columns that have one; `None` writes no such row.
    pub total: Option<String>,
    /// Sums and counts that a row picks for a cell by their position.
    pub sums: Vec<SumLayout>,
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
    /// Shows numbers with the formula that they follow from.
    pub sum: Option<SumLayout>,
    /// Has a total in the last row, if the sheet has such a row.
    pub has_total: bool,
    /// Hides the column if no row has a value in it.
    pub hide_empty: bool,
    /// Offers the cells of another column as a drop-down list.
    pub choices: Option<ColumnRef>,
}

/// A column of another sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRef {
    /// The name of the sheet.
    pub sheet: String,
    /// The header of the column.
    pub header: String,
}

/// A sum or count of the rows of another sheet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SumLayout {
    /// Header of the column that is summed; `None` counts rows.
    pub sum: Option<String>,
    /// The sheet whose rows are summed or counted. It is finished before this one begins.
    pub of: String,
    /// Headers of its columns, with what their cells must equal.
    pub conditions: Vec<(String, Condition)>,
}

/// The value that a cell must equal for its row to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The cell of this column in the row that shows the figure.
    Column(String),
    /// This text.
    Text(String),
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
