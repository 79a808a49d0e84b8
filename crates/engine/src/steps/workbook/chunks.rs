//! The rows of a sheet, in chunks: from the program of the sheet, or from records that are read one at a time.

use super::declared::{Sheet, WorkbookError};
use super::rows::{Programs, ROW, Rows};
use crate::steps::records::CHUNK;
use milepost_core::base::in_order::in_order;
use milepost_core::base::texts::Texts;
use milepost_core::expr::jq::{EvaluationInput, Evaluator, JqError};
use serde_json::Value;

/// The rows whose cells are computed before they are written, if more need not be.
const AT_ONCE: usize = 256;

/// Receives the JSON text of one record.
pub(crate) type EachRecord<'a> = dyn FnMut(&str) -> Result<(), WorkbookError> + 'a;

/// Reads the records that a plain path (second argument) selects from the input or output of a name (first argument), in order.
pub(crate) type Feed<'a> =
    dyn FnMut(&str, &str, &mut EachRecord<'_>) -> Result<(), WorkbookError> + 'a;

/// Computes something of rows, on any thread.
pub(super) type Compute<'a, T> =
    dyn Fn(&mut Rows<'_>, Vec<Value>) -> Result<T, WorkbookError> + Sync + 'a;

/// A sheet with its programs, and the scope that its rows come from.
pub(super) struct RowSources<'a> {
    pub(super) file: &'a str,
    pub(super) declared: &'a Sheet,
    pub(super) programs: &'a Programs,
    pub(super) scope: &'a Value,
    pub(super) evaluator: &'a dyn Evaluator,
    pub(super) threads: usize,
}

impl RowSources<'_> {
    /// Binds the programs of the sheet to the scope.
    ///
    /// # Errors
    /// When a value of the scope cannot be passed to a program.
    pub(super) fn bind(&self) -> Result<Rows<'_>, JqError> {
        Rows::bind(
            self.file,
            self.declared,
            self.programs,
            self.scope,
            self.evaluator,
        )
    }

    /// Computes something of all rows, a chunk at a time, and passes the results to `take` in the order of the rows.
    ///
    /// # Errors
    /// When a program fails or records cannot be read, and the errors of `take`.
    pub(super) fn each_chunk<T: Send>(
        &self,
        feed: &mut Feed<'_>,
        compute: &Compute<'_, T>,
        take: &mut dyn FnMut(Result<T, WorkbookError>) -> Result<(), WorkbookError>,
    ) -> Result<(), WorkbookError> {
        let mut bound = self.bind()?;
        let (record_bytes, row_count) = bound.at_once();
        let (Some(input), Some(stream)) = (&self.declared.input, &self.declared.stream) else {
            let mut rows = self.programs.rows(self.scope, self.evaluator)?.into_iter();
            while rows.len() > 0 {
                let some = rows.by_ref().take(row_count.max(AT_ONCE));
                take(compute(&mut bound, some.collect()))?;
            }
            return Ok(());
        };
        let enough = record_bytes.max(row_count * ROW).max(CHUNK);
        in_order(
            self.threads,
            &|| {
                let mut bound = self.bind();
                Box::new(move |records: Texts| match &mut bound {
                    Ok(bound) => {
                        let inputs: Vec<EvaluationInput<'_>> =
                            records.iter().map(Into::into).collect();
                        let rows = bound.of_records(&inputs)?;
                        compute(bound, rows)
                    }
                    Err(error) => Err(error.clone().into()),
                })
            },
            |give| {
                let mut records = Texts::default();
                feed(input, stream, &mut |record| {
                    records.add(record);
                    if records.length() < enough {
                        return Ok(());
                    }
                    give(std::mem::take(&mut records))
                })?;
                give(records)
            },
            take,
        )
    }
}
