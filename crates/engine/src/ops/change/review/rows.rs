//! Reads the rows of a review sheet with the outputs of its stage as they are on disk.

use super::data::ItemName;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::{OpenProject, scan_stage, state_for_reading};
use crate::run::batch::workers::threads;
use crate::run::check::batch_scanner::Keep;
use crate::run::check::scopes;
use crate::run::{CancelToken, JqWorkers, ReviewSheet, SheetRows, WorkbookError, file_feed};
use milepost_core::base::digest::Digest;
use milepost_core::base::natural::natural;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope::Scope;
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::BatchRecord;
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::scan::BatchScan;
use milepost_formats::xlsx::cell_text;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Decides which rows are returned: receives the name of each row, and returns the place of those to keep.
pub(super) type Pick<'a> = dyn FnMut(&ItemName) -> Option<u64> + 'a;

/// A row of a review sheet.
pub(super) struct ReviewRow {
    pub(super) place: u64,
    pub(super) name: ItemName,
    /// The texts of its columns, by header.
    pub(super) texts: BTreeMap<String, String>,
    /// The value that the columns are computed from.
    pub(super) value: Value,
}

/// The rows that were picked.
#[derive(Default)]
pub(super) struct FoundRows {
    /// False if no batch of the stage has outputs.
    pub(super) has_run: bool,
    pub(super) rows: Vec<ReviewRow>,
    /// The labels that a column offers as choices, by header.
    pub(super) offered: BTreeMap<String, Vec<String>>,
    /// The recorded facts of the stage's batches.
    facts: Vec<Arc<Facts>>,
}

impl FoundRows {
    /// Returns the digest of an input when the stage read it; `None` if it did not exist.
    pub(super) fn recorded(&self, path: &FilePath) -> Option<Digest> {
        let mut facts = self.facts.iter();
        facts.find_map(|facts| facts.get(FactKind::Input, &path.text())?.digest())
    }
}

/// Reads the picked rows of a review sheet.
///
/// # Errors
/// When a file cannot be read, or a program of the workbook fails.
pub(super) fn read(
    opened: &OpenProject,
    sheet: &ReviewSheet<'_>,
    pick: &mut Pick<'_>,
) -> Result<FoundRows, OpsError> {
    let mut found = FoundRows::default();
    if !opened.workspace.is_made {
        return Ok(found);
    }
    let (ctx, stage) = (opened.context(), sheet.stage);
    let state = state_for_reading(opened)?;
    let Some(known) = state.stages.get(&stage.name) else {
        return Ok(found);
    };
    let scan = scan_stage(&ctx, stage, &state, RebuildPolicy::Needed, Keep::All);
    let reader = SheetReader::compile(opened, sheet)?;
    for batch in &scan.map_err(OpsError::World)?.batches {
        let of_key = known.batches.get(&batch.batch.key);
        if let Some(record) = of_key.and_then(|batch| batch.record.as_ref()) {
            found.has_run = true;
            found.facts.push(Arc::new(record.facts.clone()));
            found.facts.push(known.shared(record));
            reader.read(batch, record, pick, &mut found)?;
        }
    }
    Ok(found)
}

/// The compiled programs of a review sheet.
struct SheetReader<'a> {
    opened: &'a OpenProject,
    sheet: &'a ReviewSheet<'a>,
    cancel: Arc<CancelToken>,
    workers: JqWorkers,
    /// The columns that name records: key, then shared key.
    named: SheetRows,
    headers: Vec<&'a str>,
    /// The columns that a person reads.
    shown: SheetRows,
    /// The columns that others offer as choices, by the headers of these.
    offered: Vec<(String, SheetRows)>,
}

impl<'a> SheetReader<'a> {
    fn compile(opened: &'a OpenProject, sheet: &'a ReviewSheet<'a>) -> Result<Self, OpsError> {
        let names = sheet.stage.scope_names();
        let compile = |name: &str, headers: &[&str]| -> Result<SheetRows, OpsError> {
            SheetRows::compile(&sheet.workbook, name, headers, &names).map_err(wrong)
        };
        let review = &sheet.review;
        let named = [&review.key, &review.shared_key].into_iter().flatten();
        let named: Vec<&str> = named.map(String::as_str).collect();
        let headers = sheet.shown();
        let mut offered = Vec::new();
        for header in review.fields.keys() {
            if let Some((other, column)) = sheet.choices(header) {
                offered.push((header.clone(), compile(other, &[column])?));
            }
        }
        let cancel = Arc::new(CancelToken::default());
        let reader = Self {
            named: compile(&sheet.name, &named)?,
            shown: compile(&sheet.name, &headers)?,
            workers: JqWorkers::new(sheet.stage, &cancel),
            opened,
            sheet,
            cancel,
            headers,
            offered,
        };
        reader.check()?;
        Ok(reader)
    }

    /// Returns all programs.
    fn programs(&self) -> impl Iterator<Item = &SheetRows> {
        let offered = self.offered.iter().map(|(_, rows)| rows);
        [&self.named, &self.shown].into_iter().chain(offered)
    }

    /// Refuses a sheet that needs the result of a step that is in no file.
    fn check(&self) -> Result<(), OpsError> {
        let (stage, file, name) = (self.sheet.stage, self.sheet.file, &self.sheet.name);
        let read = self
            .programs()
            .flat_map(|rows| rows.names().into_iter().chain(rows.streamed()));
        let is_kept = |name: &String| stage.outputs.iter().any(|output| output.name == *name);
        let is_step = |name: &String| stage.steps.iter().any(|step| step.out == *name);
        match read
            .collect::<BTreeSet<_>>()
            .into_iter()
            .find(|name| is_step(name) && !is_kept(name))
        {
            Some(step) => Err(OpsError::Usage(format!(
                "{file}: sheet {name:?}: the review page reads outputs only, and `{step}` is the result of a step: declare it in `[outputs]` of the stage `{}`, or fill in the workbook",
                stage.name
            ))),
            None => Ok(()),
        }
    }

    /// Adds the picked rows of a batch.
    fn read(
        &self,
        batch: &BatchScan,
        record: &BatchRecord,
        pick: &mut Pick<'_>,
        found: &mut FoundRows,
    ) -> Result<(), OpsError> {
        let scope = self.scope(batch, record).map_err(|outcome| {
            OpsError::World(format!("{}: {}", self.sheet.stage.name, outcome.message))
        })?;
        let names: BTreeSet<String> = self.programs().flat_map(SheetRows::names).collect();
        let values = scope.value_for(&names);
        let values = values.map_err(|error| OpsError::World(error.to_string()))?;
        let picked = self.pick(&scope, &values, pick)?;
        let rows = picked.iter().map(|(_, _, row)| row.clone()).collect();
        let cells = self.shown.cells(rows, &values, &self.workers);
        for ((place, name, value), cells) in picked.into_iter().zip(cells.map_err(wrong)?) {
            let texts = self.headers.iter().zip(&cells);
            let texts =
                texts.filter_map(|(header, cell)| Some(((*header).to_owned(), cell_text(cell)?)));
            found.rows.push(ReviewRow {
                place,
                name,
                texts: texts.collect(),
                value,
            });
        }
        for (header, rows) in &self.offered {
            let labels = found.offered.entry(header.clone()).or_default();
            let mut take = |cells: Vec<Value>, _| {
                labels.extend(cells.first().and_then(cell_text));
                Ok(())
            };
            self.each(rows, &scope, &values, &mut take)?;
        }
        Ok(())
    }

    /// Returns the rows that are picked, with their places and names.
    fn pick(
        &self,
        scope: &Scope,
        values: &Value,
        pick: &mut Pick<'_>,
    ) -> Result<Vec<(u64, ItemName, Value)>, OpsError> {
        let mut picked = Vec::new();
        let has_key = self.sheet.review.key.is_some();
        self.each(&self.named, scope, values, &mut |cells, row| {
            let mut texts = cells.iter().map(cell_text);
            let key = if has_key {
                texts.next().flatten()
            } else {
                None
            };
            let shared_key = texts.next().flatten().map(ItemName::SharedKey);
            // A row that names nothing cannot be corrected.
            if let Some(name) = key.map(ItemName::Key).or(shared_key)
                && let Some(place) = pick(&name)
            {
                picked.push((place, name, row));
            }
            Ok(())
        })?;
        Ok(picked)
    }

    /// Passes the cells of each row to `take`.
    fn each(
        &self,
        rows: &SheetRows,
        scope: &Scope,
        values: &Value,
        take: &mut dyn FnMut(Vec<Value>, Value) -> Result<(), WorkbookError>,
    ) -> Result<(), OpsError> {
        if rows.streamed().is_some_and(|name| scope.is_absent(&name)) {
            return Ok(());
        }
        let mut feed = file_feed(|name: &str| {
            let source = scope.source(name);
            source
                .ok_or_else(|| io::Error::other("expected one file"))?
                .open()
        });
        let read = rows.each(values, &mut feed, &self.workers, threads(None), take);
        read.map_err(wrong)
    }

    /// Returns the values, inputs and recorded outputs of a batch.
    fn scope(&self, batch: &BatchScan, record: &BatchRecord) -> Result<Scope, Outcome> {
        let (ctx, stage) = (self.opened.context(), self.sheet.stage);
        let mut scope = scopes::of_inputs(&ctx, stage, batch, ctx.moment(), &self.cancel)?;
        for output in &stage.outputs {
            let mut there = Vec::new();
            for made in record
                .outputs
                .iter()
                .filter(|made| made.name == output.name)
            {
                let path = FilePath::workspace(made.path.clone());
                let file = scopes::source(&ctx, &path, &self.cancel)?;
                there.push((file, output.reading()));
            }
            there.sort_by(|a, b| natural(&a.0.name(), &b.0.name()));
            if output.per_round {
                there.drain(..there.len().saturating_sub(1));
            }
            let is_list = output.is_many() && !output.per_round;
            scopes::insert(&mut scope, &output.name, is_list, there);
        }
        Ok(scope)
    }
}

fn wrong(error: WorkbookError) -> OpsError {
    OpsError::World(error.to_string())
}
