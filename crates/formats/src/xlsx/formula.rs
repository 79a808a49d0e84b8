//! Figures that follow from the rows of another sheet: sums and counts as formulas, and lists of choices.
//!
//! A formula is made of a layout and of the places of cells, never of the value of a cell.

use std::collections::HashMap;
use std::fmt::Write as _;

use rust_xlsxwriter::utility::{column_number_to_name, quote_sheet_name};
use serde_json::Value;

use super::layout::{ColumnLayout, ColumnRef, Condition, SumLayout};

/// The tabs of a sheet that is complete: their names and numbers of rows below the header.
#[derive(Debug, Default)]
pub(crate) struct WrittenTabs {
    headers: Vec<String>,
    tabs: Vec<(String, u32)>,
}

impl WrittenTabs {
    pub(crate) fn new(columns: &[ColumnLayout], tabs: Vec<(String, u32)>) -> Self {
        let headers = columns.iter().map(|column| column.header.clone());
        Self {
            headers: headers.collect(),
            tabs,
        }
    }

    fn column(&self, sheet: &str, header: &str) -> Result<usize, String> {
        let found = self.headers.iter().position(|own| own == header);
        found.ok_or_else(|| format!("sheet {sheet:?} has no column {header:?}"))
    }
}

/// Returns the cells of a column on a tab, such as `Elements!$C$2:$C$301`.
fn range(tab: &(String, u32), column: usize) -> String {
    let (name, rows) = tab;
    let letters = column_number_to_name(column as u16);
    let name = quote_sheet_name(name);
    format!("{name}!${letters}$2:${letters}${}", rows + 1)
}

/// The complete sheets of a workbook by name.
pub(crate) type Sheets = HashMap<String, WrittenTabs>;

fn sheet<'s>(sheets: &'s Sheets, name: &str) -> Result<&'s WrittenTabs, String> {
    let found = sheets.get(name);
    found.ok_or_else(|| format!("sheet {name:?} is not complete: write it before this one"))
}

/// A sum or count with the places that it reads.
#[derive(Debug)]
pub(crate) struct Sum {
    /// For each tab: the range that is summed, and the range of each condition.
    tabs: Vec<(Option<String>, Vec<String>)>,
    criteria: Vec<Criterion>,
    /// The rows of all tabs, for a count without conditions.
    has_rows: bool,
}

#[derive(Debug)]
enum Criterion {
    /// The cell of this column in the row of the formula.
    Own(usize),
    Text(String),
}

impl Sum {
    /// Resolves a layout against the complete sheets and the columns of the sheet that shows the figure.
    pub(crate) fn resolve(
        layout: &SumLayout,
        own: &[ColumnLayout],
        sheets: &Sheets,
    ) -> Result<Self, String> {
        let of = sheet(sheets, &layout.of)?;
        let column = |header: &String| of.column(&layout.of, header);
        let sum = layout.sum.as_ref().map(column).transpose()?;
        let places = layout.conditions.iter().map(|(header, _)| column(header));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let criteria = layout.conditions.iter().map(|(_, equals)| match equals {
            Condition::Column(header) => {
                let at = own.iter().position(|column| &column.header == header);
                let at = at.ok_or_else(|| format!("it has no column {header:?}"))?;
                Ok(Criterion::Own(at))
            }
            Condition::Text(text) => Ok(Criterion::Text(text.clone())),
        });
        let tabs = of.tabs.iter().filter(|(_, rows)| *rows > 0).map(|tab| {
            let first = places.is_empty().then_some(0);
            let summed = sum.or(first).map(|column| range(tab, column));
            let ranges = places.iter().map(|&column| range(tab, column));
            (summed, ranges.collect())
        });
        Ok(Self {
            has_rows: layout.sum.is_none(),
            criteria: criteria.collect::<Result<_, String>>()?,
            tabs: tabs.collect(),
        })
    }

    /// Returns the formula for a row; `None` if a condition has a value that Excel would read as a pattern, a comparison or another
    /// type, so that the formula could return another figure.
    pub(crate) fn in_row(&self, row: u32, cells: &[Value]) -> Option<String> {
        let mut criteria = Vec::with_capacity(self.criteria.len());
        for criterion in &self.criteria {
            criteria.push(match criterion {
                Criterion::Own(at) => {
                    let cell = cells.get(*at).unwrap_or(&Value::Null);
                    if !is_plain(cell) {
                        return None;
                    }
                    format!("${}{}", column_number_to_name(*at as u16), row + 1)
                }
                Criterion::Text(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            });
        }
        let mut out = String::new();
        for (summed, ranges) in &self.tabs {
            out.push(if out.is_empty() { '=' } else { '+' });
            let counts = self.has_rows;
            let name = match (counts, ranges.is_empty()) {
                (true, true) => "ROWS(",
                (true, false) => "COUNTIFS(",
                (false, true) => "SUM(",
                (false, false) => "SUMIFS(",
            };
            out.push_str(name);
            let conditions = ranges.iter().zip(&criteria);
            let conditions = conditions.map(|(range, criterion)| format!("{range},{criterion}"));
            let summed = summed.iter().cloned();
            let parts: Vec<String> = summed.chain(conditions).collect();
            let _ = write!(out, "{})", parts.join(","));
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Returns true for a value that a condition compares as it is. Digits could make a text a number or a date.
fn is_plain(cell: &Value) -> bool {
    match cell {
        Value::Number(_) => true,
        Value::String(text) => {
            let is_truth = ["true", "false"]
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word));
            let begins = text.chars().next().is_some_and(char::is_alphabetic);
            let is_word = |c: char| c.is_alphabetic() || "_ -".contains(c);
            begins && !is_truth && text.len() < 200 && text.chars().all(is_word)
        }
        _ => false,
    }
}

/// Returns the cells that a column of a complete sheet offers as choices; `None` if it has no rows.
pub(crate) fn choices(column: &ColumnRef, sheets: &Sheets) -> Result<Option<String>, String> {
    let of = sheet(sheets, &column.sheet)?;
    let at = of.column(&column.sheet, &column.header)?;
    let first = of.tabs.first().filter(|(_, rows)| *rows > 0);
    Ok(first.map(|tab| format!("={}", range(tab, at))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn columns(headers: &[&str]) -> Vec<ColumnLayout> {
        let column = |header: &&str| ColumnLayout {
            header: (*header).to_owned(),
            ..ColumnLayout::default()
        };
        headers.iter().map(column).collect()
    }

    fn sheets(tabs: &[(&str, u32)]) -> Sheets {
        let tabs = tabs.iter().map(|(name, rows)| ((*name).to_owned(), *rows));
        let written = WrittenTabs::new(&columns(&["Id", "Type", "m³"]), tabs.collect());
        Sheets::from([("Rows".to_owned(), written)])
    }

    fn formula(
        sum: Option<&str>,
        conditions: &[(&str, Condition)],
        of: &Sheets,
        cells: &Value,
    ) -> Option<String> {
        let layout = SumLayout {
            sum: sum.map(str::to_owned),
            of: "Rows".to_owned(),
            conditions: conditions
                .iter()
                .map(|(header, equals)| ((*header).to_owned(), equals.clone()))
                .collect(),
        };
        let own = columns(&["Label", "Key"]);
        let cells = cells.as_array().unwrap();
        Sum::resolve(&layout, &own, of).unwrap().in_row(4, cells)
    }

    #[test]
    fn sums_and_counts_read_every_tab() {
        let one = sheets(&[("Rows", 7)]);
        let two = sheets(&[("Rows", 7), ("Rows 2", 2), ("Rows 3", 0)]);
        let by_key = [("Type", Condition::Column("Key".to_owned()))];
        let fixed = [("Type", Condition::Text("a \"b\"".to_owned()))];
        let cells = json!(["=1+1", "wall"]);
        let of = |sum, conditions: &[_], sheets| formula(sum, conditions, sheets, &cells).unwrap();
        assert_eq!(
            [
                of(Some("m³"), &by_key, &one),
                of(None, &by_key, &one),
                of(Some("m³"), &[], &one),
                of(None, &[], &two),
                of(Some("m³"), &fixed, &two),
            ],
            [
                "=SUMIFS(Rows!$C$2:$C$8,Rows!$B$2:$B$8,$B5)",
                "=COUNTIFS(Rows!$B$2:$B$8,$B5)",
                "=SUM(Rows!$C$2:$C$8)",
                "=ROWS(Rows!$A$2:$A$8)+ROWS('Rows 2'!$A$2:$A$3)",
                "=SUMIFS(Rows!$C$2:$C$8,Rows!$B$2:$B$8,\"a \"\"b\"\"\")+\
                 SUMIFS('Rows 2'!$C$2:$C$3,'Rows 2'!$B$2:$B$3,\"a \"\"b\"\"\")",
            ]
        );
    }

    #[test]
    fn a_condition_that_excel_would_read_otherwise_has_no_formula() {
        let one = sheets(&[("Rows", 7)]);
        let by_key = [("Type", Condition::Column("Key".to_owned()))];
        for cell in [
            json!(null),
            json!(""),
            json!("a*"),
            json!(">3"),
            json!("01"),
            json!("=1"),
            json!("May 1"),
            json!("TRUE"),
        ] {
            assert_eq!(
                formula(Some("m³"), &by_key, &one, &json!(["x", cell])),
                None,
                "{cell}"
            );
        }
        assert_eq!(
            formula(None, &[], &sheets(&[("Rows", 0)]), &json!([])),
            None
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let of = sheets(&[("Rows", 7)]);
        let layout = |sheet: &str, sum: &str| SumLayout {
            sum: Some(sum.to_owned()),
            of: sheet.to_owned(),
            conditions: Vec::new(),
        };
        let said = |layout: &SumLayout| Sum::resolve(layout, &[], &of).unwrap_err();
        assert_eq!(
            said(&layout("Rows", "m²")),
            "sheet \"Rows\" has no column \"m²\""
        );
        assert_eq!(
            said(&layout("Other", "m³")),
            "sheet \"Other\" is not complete: write it before this one"
        );
    }
}
