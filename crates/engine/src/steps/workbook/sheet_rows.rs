//! The rows and cells of one sheet as values, without writing a workbook.

use super::chunks::{Feed, RowSources};
use super::declared::{Column, ColumnOptions, Workbook, WorkbookError};
use super::rows::CompiledWorkbook;
use milepost_core::expr::jq::Evaluator;
use serde_json::Value;
use std::collections::BTreeSet;

/// A sheet of a workbook, compiled, with some of its columns.
pub(crate) struct SheetRows {
    compiled: CompiledWorkbook,
}

/// Receives the cells of a row and the row that they come from.
pub(crate) type EachRow<'a> = dyn FnMut(Vec<Value>, Value) -> Result<(), WorkbookError> + 'a;

impl SheetRows {
    /// Compiles a sheet with the columns below these headers, in this order. `names` are the names of the scope.
    ///
    /// # Errors
    /// When a program does not compile.
    pub(crate) fn compile(
        workbook: &Workbook,
        sheet: &str,
        headers: &[&str],
        names: &[String],
    ) -> Result<Self, WorkbookError> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut only = workbook.clone();
        only.title = None;
        only.sheets.retain(|other| other.name == sheet);
        for sheet in &mut only.sheets {
            let declared = sheet.columns.take().unwrap_or_default();
            let column = |header: &&str| {
                let column = declared.iter().find(|column| column.header == *header)?;
                Some(Column {
                    options: ColumnOptions::default(),
                    ..column.clone()
                })
            };
            sheet.columns = Some(headers.iter().filter_map(column).collect());
        }
        let compiled = only.compile(&names)?;
        Ok(Self { compiled })
    }

    /// Returns the names of the scope whose values are needed; that of streamed records only if a program mentions it.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.compiled.names()
    }

    /// Returns the name of the input or output that records are read from.
    pub(crate) fn streamed(&self) -> Option<String> {
        self.compiled.streamed().pop_first()
    }

    /// Passes each row to `take`, in order, with its cells.
    ///
    /// # Errors
    /// When a program fails or records cannot be read, and the errors of `take`.
    pub(crate) fn each(
        &self,
        scope: &Value,
        feed: &mut Feed<'_>,
        evaluator: &dyn Evaluator,
        threads: usize,
        take: &mut EachRow<'_>,
    ) -> Result<(), WorkbookError> {
        let Some(sources) = self.sources(scope, evaluator, threads) else {
            return Ok(());
        };
        sources.each_chunk(
            feed,
            &|rows, found| Ok((rows.cells(found.clone())?, found)),
            &mut |chunk| {
                let (cells, rows) = chunk?;
                cells
                    .into_iter()
                    .zip(rows)
                    .try_for_each(|(cells, row)| take(cells, row))
            },
        )
    }

    /// Returns the cells of rows.
    ///
    /// # Errors
    /// When a program fails.
    pub(crate) fn cells(
        &self,
        rows: Vec<Value>,
        scope: &Value,
        evaluator: &dyn Evaluator,
    ) -> Result<Vec<Vec<Value>>, WorkbookError> {
        match self.sources(scope, evaluator, 1) {
            Some(sources) => sources.bind()?.cells(rows),
            None => Ok(Vec::new()),
        }
    }

    fn sources<'a>(
        &'a self,
        scope: &'a Value,
        evaluator: &'a dyn Evaluator,
        threads: usize,
    ) -> Option<RowSources<'a>> {
        Some(RowSources {
            file: &self.compiled.workbook.file,
            declared: self.compiled.workbook.sheets.first()?,
            programs: self.compiled.sheets.first()?,
            scope,
            evaluator,
            threads,
        })
    }
}
