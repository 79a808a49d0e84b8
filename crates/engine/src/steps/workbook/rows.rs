//! The compiled programs of a workbook file: rows from the scope, cells from a row.

use milepost_core::expr::json;
use milepost_core::expr::name::is_name;
use std::collections::BTreeSet;

use serde_json::Value;

use super::declared::{Column, Sheet, Workbook, WorkbookError};
use milepost_core::expr::jq::{EvaluationInput, Evaluator, Jq, JqError, Limited};

/// A workbook file whose programs are compiled.
#[derive(Debug, Clone)]
pub struct CompiledWorkbook {
    pub(super) workbook: Workbook,
    pub(super) sheets: Vec<Programs>,
    title: Option<Program>,
}

/// The programs of a sheet.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    rows: Option<Program>,
    each: Option<Program>,
    columns: Vec<Column>,
    cells: Vec<Cell>,
    /// All cells that are programs, in one: run once a row.
    together: Option<Program>,
}

#[derive(Debug, Clone)]
enum Cell {
    /// `.a.b`: read without running a program.
    Path(Vec<String>),
    /// `[.a[]?.b]`: likewise. The path to the list, then the path in each of it.
    Each(Vec<String>, Vec<String>),
    Jq(Program),
}

/// A program, and the names of the scope that it uses as variables.
#[derive(Debug, Clone)]
struct Program {
    jq: Jq,
    vars: Vec<String>,
}

impl Program {
    fn compile(name: &str, source: &str, vars: &[&str]) -> Result<Self, JqError> {
        // Only what it mentions is converted for it: the scope may hold all records.
        let used: Vec<&str> = vars
            .iter()
            .copied()
            .filter(|v| source.contains(&format!("${v}")))
            .collect();
        let (jq, used) = match Jq::compile(name, source, &used) {
            Ok(jq) => (jq, used.as_slice()),
            // The message for a name that is not there lists all that are.
            Err(_) => (Jq::compile(name, source, vars)?, vars),
        };
        Ok(Self {
            jq,
            vars: used.iter().map(|&v| v.to_owned()).collect(),
        })
    }

    fn bind<'a>(
        &'a self,
        scope: &Value,
        evaluator: &'a dyn Evaluator,
    ) -> Result<Limited<'a>, JqError> {
        let values = self
            .vars
            .iter()
            .map(|name| scope.get(name).unwrap_or(&Value::Null));
        self.jq.limited(&values.collect::<Vec<_>>(), evaluator)
    }

    /// Returns what it emits with the scope as its input.
    fn over(&self, scope: &Value, evaluator: &dyn Evaluator) -> Result<Vec<Value>, JqError> {
        self.bind(scope, evaluator)?.all(scope)
    }
}

impl Workbook {
    /// Compiles the programs. `names` are the names of the scope: fields of the input of `rows`, and variables of every program.
    ///
    /// # Errors
    /// When a program does not compile or a sheet streams from a name that is not in the scope.
    pub fn compile(self, names: &[&str]) -> Result<CompiledWorkbook, WorkbookError> {
        let mut sheets = Vec::with_capacity(self.sheets.len());
        for sheet in &self.sheets {
            if let Some(input) = sheet.input.as_deref().filter(|i| !names.contains(i)) {
                return Err(WorkbookError::Sheet {
                    file: self.file.clone(),
                    sheet: sheet.name.clone(),
                    reason: format!(
                        "`in = \"{input}\"` is neither an input nor an output of the stage; it has {}",
                        names.join(", ")
                    ),
                });
            }
            sheets.push(programs(&self.file, sheet, names)?);
        }
        let title = self.title.as_deref();
        let title =
            title.map(|source| Program::compile(&format!("{}: title", self.file), source, names));
        Ok(CompiledWorkbook {
            title: title.transpose()?,
            workbook: self,
            sheets,
        })
    }
}

fn programs(file: &str, sheet: &Sheet, names: &[&str]) -> Result<Programs, WorkbookError> {
    let place = format!("{file}: sheet {:?}", sheet.name);
    let rows = sheet
        .rows
        .as_deref()
        .map(|source| Program::compile(&format!("{place}: rows"), source, names))
        .transpose()?;
    let each = sheet
        .each
        .as_deref()
        .map(|source| Program::compile(&format!("{place}: each"), source, names))
        .transpose()?;
    let columns = sheet.cells();
    let mut cells = Vec::with_capacity(columns.len());
    for column in &columns {
        cells.push(
            match (plain_path(&column.cell), listed_path(&column.cell)) {
                (Some(path), _) => Cell::Path(path),
                (None, Some((list, path))) => Cell::Each(list, path),
                (None, None) => Cell::Jq(Program::compile(
                    &format!("{place}, column {:?}", column.header),
                    &column.cell,
                    names,
                )?),
            },
        );
    }
    let parts: Vec<String> = columns
        .iter()
        .zip(&cells)
        .filter(|(_, cell)| matches!(cell, Cell::Jq(_)))
        // The line feed ends a comment that the program may end with.
        .map(|(column, _)| format!("[{}\n]", column.cell))
        .collect();
    let together = if parts.len() > 1 {
        let source = format!("[{}]", parts.join(","));
        Some(Program::compile(&place, &source, names)?)
    } else {
        None
    };
    Ok(Programs {
        rows,
        each,
        columns,
        cells,
        together,
    })
}

/// Returns the names of `.a.b` if that is the whole program.
fn plain_path(source: &str) -> Option<Vec<String>> {
    let names: Vec<String> = source
        .trim()
        .strip_prefix('.')?
        .split('.')
        .map(str::to_owned)
        .collect();
    names.iter().all(|name| is_name(name)).then_some(names)
}

/// Returns the two paths of `[.a[]?.b]` if that is the whole program.
fn listed_path(source: &str) -> Option<(Vec<String>, Vec<String>)> {
    let inner = source.trim().strip_prefix('[')?.strip_suffix(']')?;
    let (list, path) = inner.split_once("[]?")?;
    Some((plain_path(list)?, plain_path(path)?))
}

impl CompiledWorkbook {
    /// Returns the names of the scope that the programs mention: only their values are needed.
    pub fn names(&self) -> BTreeSet<String> {
        let programs = self.sheets.iter().flat_map(|sheet| {
            let cells = sheet.cells.iter().filter_map(|cell| match cell {
                Cell::Jq(program) => Some(program),
                Cell::Path(_) | Cell::Each(..) => None,
            });
            let vars = cells
                .chain(&sheet.each)
                .flat_map(|p| p.vars.iter().cloned());
            let rows = sheet.rows.iter().flat_map(|p| p.jq.names().iter().cloned());
            vars.chain(rows)
        });
        let title = self.title.iter().flat_map(|p| p.jq.names().iter().cloned());
        programs.chain(title).collect()
    }

    /// Returns the title, if the file declares one and it is a text.
    ///
    /// # Errors
    /// When its program fails.
    pub(super) fn title(
        &self,
        scope: &Value,
        evaluator: &dyn Evaluator,
    ) -> Result<Option<String>, JqError> {
        let Some(program) = &self.title else {
            return Ok(None);
        };
        let found = program.over(scope, evaluator)?.into_iter().next();
        Ok(found.and_then(|title| title.as_str().map(str::to_owned)))
    }

    /// Removes the sheets whose streamed file is absent.
    pub fn leave_out(&mut self, is_absent: impl Fn(&str) -> bool) {
        let is_left_out = |sheet: &Sheet| sheet.input.as_deref().is_some_and(&is_absent);
        let sheets = std::mem::take(&mut self.workbook.sheets);
        let both = sheets.into_iter().zip(std::mem::take(&mut self.sheets));
        let kept = both.filter(|(sheet, _)| !is_left_out(sheet));
        (self.workbook.sheets, self.sheets) = kept.unzip();
    }

    /// Returns the names of the inputs and outputs that sheets stream from.
    pub fn streamed(&self) -> BTreeSet<String> {
        self.workbook
            .sheets
            .iter()
            .filter_map(|sheet| sheet.input.clone())
            .collect()
    }
}

/// About the bytes of a row.
pub(super) const ROW: usize = 1 << 10;

/// The programs of a sheet with the values of the scope.
pub(super) struct Rows<'a> {
    programs: &'a Programs,
    columns: &'a [Column],
    has_columns: bool,
    file: &'a str,
    sheet: &'a str,
    each: Option<Limited<'a>>,
    cells: Vec<Option<Limited<'a>>>,
    together: Option<Limited<'a>>,
}

impl Programs {
    /// Returns the rows that `rows` emits over the scope; none for a streamed sheet.
    pub(super) fn rows(
        &self,
        scope: &Value,
        evaluator: &dyn Evaluator,
    ) -> Result<Vec<Value>, JqError> {
        let Some(program) = &self.rows else {
            return Ok(Vec::new());
        };
        program.over(scope, evaluator)
    }
}

impl<'a> Rows<'a> {
    pub(super) fn bind(
        file: &'a str,
        sheet: &'a Sheet,
        programs: &'a Programs,
        scope: &Value,
        evaluator: &'a dyn Evaluator,
    ) -> Result<Self, JqError> {
        let cells = programs
            .cells
            .iter()
            .map(|cell| match cell {
                Cell::Path(_) | Cell::Each(..) => Ok(None),
                Cell::Jq(program) => program.bind(scope, evaluator).map(Some),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            programs,
            columns: &programs.columns,
            has_columns: sheet.columns.is_some(),
            file,
            sheet: &sheet.name,
            each: programs
                .each
                .as_ref()
                .map(|p| p.bind(scope, evaluator))
                .transpose()?,
            cells,
            together: programs
                .together
                .as_ref()
                .map(|p| p.bind(scope, evaluator))
                .transpose()?,
        })
    }

    /// Returns the bytes of records, and the number of rows, that are best given at once.
    pub(super) fn at_once(&self) -> (usize, usize) {
        let records = self.each.as_ref().map_or(0, Limited::at_once);
        let programs = self.together.iter().chain(self.cells.iter().flatten());
        let row = programs.map(Limited::at_once).max().unwrap_or_default();
        (records, row / ROW)
    }

    /// Returns the rows of streamed records.
    pub(super) fn of_records(
        &mut self,
        records: &[EvaluationInput<'_>],
    ) -> Result<Vec<Value>, WorkbookError> {
        match &mut self.each {
            Some(each) => Ok(each.all_of_each(records)?.into_iter().flatten().collect()),
            None => {
                let rows = records.iter().map(|record| json::parse(&record.value));
                let rows = rows.collect::<Result<_, _>>();
                rows.map_err(|error| WorkbookError::Records(error.to_string()))
            }
        }
    }

    /// Returns the cells of rows. Messages number the rows from 1.
    pub(super) fn cells(&mut self, rows: Vec<Value>) -> Result<Vec<Vec<Value>>, WorkbookError> {
        if !self.has_columns {
            let rows = rows.into_iter().map(bare).collect::<Result<Vec<_>, _>>();
            let rows = rows.map_err(|reason| WorkbookError::Sheet {
                file: self.file.to_owned(),
                sheet: self.sheet.to_owned(),
                reason,
            })?;
            return Ok(rows.into_iter().flatten().collect());
        }
        let computed = self.all_at_once(&rows)?;
        let mut computed = computed.map(Vec::into_iter);
        let numbered = rows.into_iter().zip(1..);
        let cells = numbered.map(|(row, number)| {
            let known = computed.as_mut().and_then(Iterator::next);
            self.of_row(&row, number, known)
        });
        cells.collect()
    }

    /// Returns the cells of a row. `computed` are the values of its programs, if they are known.
    fn of_row(
        &self,
        row: &Value,
        number: u64,
        computed: Option<Vec<Value>>,
    ) -> Result<Vec<Value>, WorkbookError> {
        let mut out = vec![Value::Null; self.columns.len()];
        for (at, cell) in self.programs.cells.iter().enumerate() {
            let found = match cell {
                Cell::Path(path) => follow(row, path).cloned(),
                Cell::Each(list, path) => follow_each(row, list, path),
                Cell::Jq(_) => continue,
            };
            out[at] = found.map_err(|reason| self.wrong(at, number, reason))?;
        }
        let mut computed = computed.map(Vec::into_iter);
        for (at, bound) in self.cells.iter().enumerate() {
            let Some(bound) = bound else { continue };
            out[at] = match &mut computed {
                Some(computed) => computed.next().unwrap_or_default(),
                None => bound
                    .one(row)
                    .map_err(|error| self.wrong(at, number, error.to_string()))?,
            };
        }
        Ok(out)
    }

    /// Returns the values of all programs for each row, if each emits one. If not, the programs are run one by one, so that the
    /// message names the column and the row.
    ///
    /// # Errors
    /// When a limit ends a program.
    fn all_at_once(&mut self, rows: &[Value]) -> Result<Option<Vec<Vec<Value>>>, JqError> {
        let is_joined = self.together.is_some();
        let alone = self.cells.iter_mut().flatten();
        let Some(program) = self.together.iter_mut().chain(alone).next() else {
            return Ok(None);
        };
        let found: Result<Vec<Value>, _> = if program.at_once() == 0 {
            rows.iter().map(|row| program.one(row)).collect()
        } else {
            let inputs = rows.iter().map(|row| row.to_string().into());
            let inputs: Vec<EvaluationInput<'_>> = inputs.collect();
            program.one_of_each(&[], &inputs)
        };
        let found = match found {
            Ok(found) => found,
            Err(error) if error.limit.is_some() => return Err(error),
            Err(_) => return Ok(None),
        };
        if !is_joined {
            let alone = found.into_iter().map(|value| vec![value]);
            return Ok(Some(alone.collect()));
        }
        let rows = found.into_iter().map(|row| {
            let Value::Array(lists) = row else {
                return None;
            };
            let cells = lists.into_iter().map(|list| match list {
                Value::Array(mut one) if one.len() == 1 => one.pop(),
                _ => None,
            });
            cells.collect()
        });
        Ok(rows.collect())
    }

    fn wrong(&self, at: usize, number: u64, reason: String) -> WorkbookError {
        WorkbookError::Cell {
            file: self.file.to_owned(),
            sheet: self.sheet.to_owned(),
            column: self.columns[at].header.clone(),
            row: number,
            reason,
        }
    }
}

/// Returns the rows of a sheet without columns from an array of cells, or an array of such arrays.
fn bare(row: Value) -> Result<Vec<Vec<Value>>, String> {
    let Value::Array(cells) = row else {
        return Err(
            "without `columns` a row is an array of cells; emit `[…]`, or add `columns`".to_owned(),
        );
    };
    if cells.is_empty() || !cells.iter().all(Value::is_array) {
        return Ok(vec![cells]);
    }
    Ok(cells
        .into_iter()
        .map(|row| match row {
            Value::Array(cells) => cells,
            other => vec![other],
        })
        .collect())
}

/// Reads a field as jq does: of null it is null, of anything else but an object an error.
fn follow<'v>(value: &'v Value, path: &[String]) -> Result<&'v Value, String> {
    let mut at = value;
    for name in path {
        at = match at {
            Value::Object(fields) => fields.get(name).unwrap_or(&Value::Null),
            Value::Null => return Ok(&Value::Null),
            other => return Err(format!("cannot take `.{name}` of {}", json::kind(other))),
        };
    }
    Ok(at)
}

/// Evaluates `[.list[]?.path]` as jq does: a value that is not iterable has no items.
fn follow_each(value: &Value, list: &[String], path: &[String]) -> Result<Value, String> {
    let items: Box<dyn Iterator<Item = &Value>> = match follow(value, list)? {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    };
    items.map(|item| follow(item, path).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{listed_path, plain_path};

    #[test]
    fn only_plain_paths_are_read_without_a_program() {
        let names = |s: &str| plain_path(s).map(|p| p.join(" "));
        assert_eq!(names(".a.b_1"), Some("a b_1".to_owned()));
        for source in [
            ".", ".a[]", ".a?", ".a // 1", ".1a", ". a", "a", ".a..b", ".a.\"b\"",
        ] {
            assert_eq!(names(source), None, "{source}");
        }
        let listed = |s: &str| listed_path(s).map(|(a, b)| [a.join(" "), b.join(" ")].join("; "));
        assert_eq!(listed("[.a.b[]?.c]"), Some("a b; c".to_owned()));
        for source in [
            ".a[]?.b",
            "[.a[].b]",
            "[.a[]?]",
            "[.a[]?.b[]?.c]",
            "[.a[]?.b, 1]",
        ] {
            assert_eq!(listed(source), None, "{source}");
        }
    }
}
