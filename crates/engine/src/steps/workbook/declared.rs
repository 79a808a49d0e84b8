//! The workbook file: which sheets a report has, from which records, with which columns and charts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[cfg(debug_assertions)]
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::review::Review;
use milepost_core::expr::jq::JqError;
use milepost_formats::xlsx::{ChartLayout, ChartStyle, ColumnLayout, SheetLayout, XlsxError};

use super::figures::{self, Choices, ColumnFigure, Figure};

/// Why a workbook could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WorkbookError {
    /// The workbook file is not TOML or does not have the keys of a workbook.
    #[error("{file}: {reason}")]
    Syntax {
        /// The workbook file.
        file: String,
        /// The parser's message, with line and column.
        reason: String,
    },
    /// A sheet that cannot be written.
    #[error("{file}: sheet {sheet:?}: {reason}")]
    Sheet {
        /// The workbook file.
        file: String,
        /// The name of the sheet.
        sheet: String,
        /// The problem and how to fix it.
        reason: String,
    },
    /// A cell whose program fails.
    #[error("{file}: sheet {sheet:?}, column {column:?}, row {row}: {reason}")]
    Cell {
        /// The workbook file.
        file: String,
        /// The name of the sheet.
        sheet: String,
        /// Header of the column.
        column: String,
        /// Number of the record, from 1.
        row: u64,
        /// The problem.
        reason: String,
    },
    /// A program that does not compile or fails; the message names sheet and column.
    #[error(transparent)]
    Program(#[from] JqError),
    /// Records that cannot be read.
    #[error("{0}")]
    Records(String),
    /// The workbook could not be written.
    #[error(transparent)]
    Write(#[from] XlsxError),
}

impl WorkbookError {
    /// Returns the error with the number of its row, if this many rows come before those that it numbers.
    pub(super) fn after(mut self, rows: u64) -> Self {
        if let Self::Cell { row, .. } = &mut self {
            *row += rows;
        }
        self
    }
}

/// A workbook: sheets over the scope of a stage.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(debug_assertions, schemars(title = "Milepost workbook file"))]
pub struct Workbook {
    /// jq over the scope: the title in the properties of the file. Default: the name of the workspace.
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// Named sums and counts that the `formula` of a column can select.
    #[serde(default)]
    pub(crate) formulas: BTreeMap<String, Figure>,
    /// The sheets, in their order.
    #[serde(rename = "sheet")]
    pub(crate) sheets: Vec<Sheet>,
    /// The file, for messages.
    #[serde(skip)]
    pub(crate) file: String,
}

/// A sheet. Its rows come from `rows`, or are streamed from a file by `in` and `stream`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Sheet {
    /// The name on its tab, at most 31 characters.
    pub(crate) name: String,
    /// jq over the scope; each output is a row. Without `columns` a row is an array
    /// of cells, and an array of such arrays is many rows.
    #[serde(default)]
    pub(crate) rows: Option<String>,
    /// Name of the input or output that `stream` reads.
    #[serde(default, rename = "in")]
    pub(crate) input: Option<String>,
    /// Plain path to the records in that file, such as `.elements`; they are read one at a time.
    #[serde(default)]
    pub(crate) stream: Option<String>,
    /// jq of a streamed record: each output is a row, so that it can leave records out
    /// or make many rows of one. Default: each record is a row.
    #[serde(default)]
    pub(crate) each: Option<String>,
    /// The columns: `["Header", "jq of the row"]`, or with options
    /// `["Volume [m³]", ".volume_m3", {width = 12, format = "0.00"}]`.
    #[serde(default)]
    pub(crate) columns: Option<Vec<Column>>,
    /// A row with a value in its first cell only is the title of a section. Such a sheet has no
    /// filter.
    #[serde(default)]
    pub(crate) sections: bool,
    /// Adds a last row with the totals of columns that have `total = true`; the value is the first cell of that row.
    #[serde(default)]
    pub(crate) total: Option<String>,
    /// A chart, or several, beside the rows.
    #[serde(default)]
    pub(crate) chart: Charts,
    /// The columns that a person fills in, and that `milepost import-review` reads.
    #[serde(default)]
    pub(crate) review: Option<Review>,
}

/// A column: header, jq of the row, options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) header: String,
    /// A jq program over the row.
    pub(crate) cell: String,
    /// How it looks.
    pub(crate) options: ColumnOptions,
}

/// How a column looks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnOptions {
    /// Width in characters. Default: the width of the cells.
    #[serde(default)]
    #[cfg_attr(debug_assertions, schemars(transform = number))]
    pub(crate) width: Option<f64>,
    /// Number format of Excel, such as `0.00` or `0.0%`.
    #[serde(default)]
    pub(crate) format: Option<String>,
    /// Long text continues in further lines of the cell.
    #[serde(default)]
    pub(crate) wrap: bool,
    /// The formula that shows where a number comes from. The number is that of the row.
    #[serde(default)]
    pub(crate) formula: Option<ColumnFigure>,
    /// The last row has a total of this column.
    #[serde(default)]
    pub(crate) total: bool,
    /// The column is hidden if no row has a value in it.
    #[serde(default)]
    pub(crate) hide_empty: bool,
    /// A drop-down list: the cells of a column of another sheet.
    #[serde(default)]
    pub(crate) choices: Option<Choices>,
}

/// `double` is not a format of JSON Schema.
#[cfg(debug_assertions)]
fn number(schema: &mut Schema) {
    schema.remove("format");
}

/// No chart, one, or several.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a chart `{kind, label, value}`, or a list of them"
)]
pub(crate) enum Charts {
    /// None.
    #[default]
    None,
    /// One.
    One(Chart),
    /// Several, one below the other.
    Many(Vec<Chart>),
}

impl Charts {
    pub(crate) fn list(&self) -> &[Chart] {
        match self {
            Self::None => &[],
            Self::One(chart) => std::slice::from_ref(chart),
            Self::Many(charts) => charts,
        }
    }
}

/// A chart of a sheet's rows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    /// The kind of chart.
    pub(crate) kind: ChartKind,
    /// Header of the column with the labels.
    pub(crate) label: String,
    /// Header of the column with the values.
    pub(crate) value: String,
    /// Title. Default: the header of the values.
    #[serde(default)]
    pub(crate) title: Option<String>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChartKind {
    /// Horizontal bars, the first row on top.
    Bar,
    /// Vertical bars.
    Column,
    /// Slices of a whole.
    Pie,
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Column;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a column `[\"Header\", \"jq of the row\", {width, format, …}]`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Column, A::Error> {
                let missing = |n| de::Error::invalid_length(n, &self);
                let header = seq.next_element()?.ok_or_else(|| missing(0))?;
                let cell = seq.next_element()?.ok_or_else(|| missing(1))?;
                let options = seq.next_element()?.unwrap_or_default();
                if seq.next_element::<IgnoredAny>()?.is_some() {
                    return Err(de::Error::invalid_length(4, &self));
                }
                Ok(Column {
                    header,
                    cell,
                    options,
                })
            }
        }
        deserializer.deserialize_seq(Parts)
    }
}

#[cfg(debug_assertions)]
impl schemars::JsonSchema for Column {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Column".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let options = generator.subschema_for::<ColumnOptions>();
        json_schema!({
            "description": "Header, jq of the row, and how it looks.",
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "string"}, options],
            "items": false,
            "minItems": 2
        })
    }
}

impl Workbook {
    /// Reads a workbook file; `file` is its name in messages.
    ///
    /// # Errors
    /// When the text is not TOML with the keys of a workbook, or a sheet breaks a rule of Excel.
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkbookError> {
        let mut workbook: Self = toml::from_str(text).map_err(|e| WorkbookError::Syntax {
            file: file.to_owned(),
            reason: e.to_string(),
        })?;
        file.clone_into(&mut workbook.file);
        workbook.check()?;
        Ok(workbook)
    }

    fn check(&self) -> Result<(), WorkbookError> {
        let mut names = BTreeSet::new();
        for sheet in &self.sheets {
            let wrong = |reason: String| WorkbookError::Sheet {
                file: self.file.clone(),
                sheet: sheet.name.clone(),
                reason,
            };
            name_fits(&sheet.name).map_err(wrong)?;
            if !names.insert(sheet.name.to_lowercase()) {
                return Err(wrong("there is another sheet of that name".to_owned()));
            }
            match (&sheet.rows, &sheet.input, &sheet.stream) {
                (Some(_), None, None) | (None, Some(_), Some(_)) => {}
                (None, None, None) => {
                    return Err(wrong(
                        "it has no rows; say `rows = '…'` (jq), or `in` and `stream`".to_owned(),
                    ));
                }
                (Some(_), _, _) => {
                    return Err(wrong(
                        "`rows` and `in`/`stream` exclude each other; keep one".to_owned(),
                    ));
                }
                _ => {
                    return Err(wrong(
                        "`in` (which file) and `stream` (a path such as `.elements`) go together"
                            .to_owned(),
                    ));
                }
            }
            if sheet.each.is_some() && sheet.stream.is_none() {
                return Err(wrong(
                    "`each` is for streamed records; with `rows` put it into that program"
                        .to_owned(),
                ));
            }
            if let Some(review) = &sheet.review {
                review.check(sheet).map_err(wrong)?;
            }
            let Some(columns) = &sheet.columns else {
                if sheet.stream.is_some() {
                    return Err(wrong("streamed records need `columns`".to_owned()));
                }
                if !sheet.chart.list().is_empty() {
                    return Err(wrong("a chart needs `columns`".to_owned()));
                }
                continue;
            };
            if columns.is_empty() || columns.len() > 16_384 {
                return Err(wrong(format!(
                    "it has {} columns; Excel allows 1 to 16384",
                    columns.len()
                )));
            }
            figures::check(self, sheet).map_err(wrong)?;
            for chart in sheet.chart.list() {
                for header in [&chart.label, &chart.value] {
                    if !columns.iter().any(|c| &c.header == header) {
                        return Err(wrong(format!(
                            "its chart refers to the missing column `{header}`"
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Sheet {
    /// Returns the columns, and behind them one for each column whose formula is named by the row: its cells are the names.
    pub(super) fn cells(&self) -> Vec<Column> {
        let columns = self.columns.iter().flatten();
        let names = columns.clone().filter_map(|column| {
            let Some(ColumnFigure::Named(cell)) = &column.options.formula else {
                return None;
            };
            let (header, cell) = (column.header.clone(), cell.clone());
            let options = ColumnOptions::default();
            Some(Column {
                header,
                cell,
                options,
            })
        });
        columns.clone().cloned().chain(names).collect()
    }

    /// Returns the positions of the columns whose formula is named by the row.
    pub(super) fn named_figures(&self) -> Vec<usize> {
        let columns = self.columns.iter().flatten().enumerate();
        let named = columns
            .filter(|(_, column)| matches!(column.options.formula, Some(ColumnFigure::Named(_))));
        named.map(|(at, _)| at).collect()
    }

    /// Returns how the sheet looks; `formulas` are those of the workbook.
    pub(super) fn layout(&self, formulas: &BTreeMap<String, Figure>) -> SheetLayout {
        let columns = self.columns.iter().flatten().map(|column| ColumnLayout {
            header: column.header.clone(),
            width: column.options.width,
            format: column.options.format.clone(),
            wrap: column.options.wrap,
            sum: match &column.options.formula {
                Some(ColumnFigure::Each(figure)) => Some(figure.layout()),
                Some(ColumnFigure::Named(_)) | None => None,
            },
            has_total: column.options.total,
            hide_empty: column.options.hide_empty,
            choices: column.options.choices.as_ref().map(Choices::layout),
        });
        let is_named = !self.named_figures().is_empty();
        let sums = formulas.values().filter(|_| is_named).map(Figure::layout);
        let charts = self.chart.list().iter().map(|chart| ChartLayout {
            style: match chart.kind {
                ChartKind::Bar => ChartStyle::Bar,
                ChartKind::Column => ChartStyle::Column,
                ChartKind::Pie => ChartStyle::Pie,
            },
            label: chart.label.clone(),
            value: chart.value.clone(),
            title: chart.title.clone(),
        });
        SheetLayout {
            name: self.name.clone(),
            columns: columns.collect(),
            has_sections: self.sections,
            charts: charts.collect(),
            is_streamed: self.stream.is_some(),
            total: self.total.clone(),
            sums: sums.collect(),
        }
    }
}

/// Returns the schema of a workbook file, for editors (JSON Schema 2020-12).
#[cfg(debug_assertions)]
pub fn workbook_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Workbook);
    schema.insert("$id".to_owned(), "workbook.schema.json".into());
    schema.to_value()
}

/// Checks the name of a sheet by the rules of Excel.
fn name_fits(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("a sheet needs a name".to_owned());
    }
    if name.encode_utf16().count() > 31 {
        return Err("the name of a sheet has at most 31 characters".to_owned());
    }
    if let Some(sign) = name
        .chars()
        .find(|c| c.is_control() || "[]:*?/\\".contains(*c))
    {
        return Err(format!(
            "the name of a sheet cannot have {sign:?}; leave out [ ] : * ? / \\"
        ));
    }
    if name.starts_with('\'') || name.ends_with('\'') {
        return Err("the name of a sheet cannot begin or end with an apostrophe".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        Workbook::parse("w.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn columns_have_two_or_three_parts() {
        let text = "[[sheet]]\nname = 'A'\nrows = '.x[]'\n\
            columns = [['H', '.h'], ['V [m³]', '.v', {width = 9, format = '0.00'}]]\n";
        let sheet = &Workbook::parse("w.toml", text).unwrap().sheets[0];
        let want = [
            Column {
                header: "H".to_owned(),
                cell: ".h".to_owned(),
                options: ColumnOptions::default(),
            },
            Column {
                header: "V [m³]".to_owned(),
                cell: ".v".to_owned(),
                options: ColumnOptions {
                    width: Some(9.0),
                    format: Some("0.00".to_owned()),
                    ..ColumnOptions::default()
                },
            },
        ];
        assert_eq!(sheet.columns.as_deref(), Some(&want[..]));
        assert!(said("[[sheet]]\nname='A'\nrows='.'\ncolumns=[['H']]").contains("a column `["));
    }

    #[test]
    fn what_excel_would_refuse_is_refused_with_the_sheet_named() {
        assert_eq!(
            said("[[sheet]]\nname = 'A/B'\nrows = '.'"),
            "w.toml: sheet \"A/B\": the name of a sheet cannot have '/'; leave out [ ] : * ? / \\"
        );
        assert_eq!(
            said("[[sheet]]\nname='a'\nrows='.'\n[[sheet]]\nname='A'\nrows='.'"),
            "w.toml: sheet \"A\": there is another sheet of that name"
        );
        assert_eq!(
            said("[[sheet]]\nname='a'"),
            "w.toml: sheet \"a\": it has no rows; say `rows = '…'` (jq), or `in` and `stream`"
        );
        assert_eq!(
            said(
                "[[sheet]]\nname='a'\nrows='.'\ncolumns=[['x','.x']]\n\
                chart={kind='bar',label='x',value='y'}"
            ),
            "w.toml: sheet \"a\": its chart refers to the missing column `y`"
        );
    }

    #[test]
    fn a_formula_that_reads_what_is_not_there_is_refused() {
        let sheets = "[[sheet]]\nname='a'\nrows='.'\ncolumns=[['x','.x']]\n\
            [[sheet]]\nname='b'\nrows='.'\n";
        let of = |column: &str| said(&format!("{sheets}columns=[['y','.y',{column}]]"));
        for (column, why) in [
            (
                "{formula={sum='z',of='a'}}",
                "the sheet `a` has no column `z`; its columns are x",
            ),
            (
                "{formula={of='c'}}",
                "it reads the sheet `c`, which is not declared",
            ),
            (
                "{formula={of='b'}}",
                "it reads the sheet `b`, which itself reads another sheet; refer to that sheet directly",
            ),
            (
                "{formula={of='a',where={x='z'}}}",
                "its formula refers to the missing column `z`",
            ),
            (
                "{choices={sheet='a',column='z'}}",
                "the sheet `a` has no column `z`; its columns are x",
            ),
        ] {
            assert_eq!(of(column), format!("w.toml: sheet \"b\": {why}"));
        }
    }

    #[test]
    fn the_schema_describes_sheets_and_columns() {
        let schema = workbook_schema();
        assert_eq!(schema["required"], serde_json::json!(["sheet"]));
        assert_eq!(schema["$defs"]["Column"]["minItems"], 2);
    }
}
