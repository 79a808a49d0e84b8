//! The corrections by hand of a record: their rows in the table, and the workbooks that they were imported from.

use super::station::{StationKind, TracedCorrection, TracedImport};
use super::tracer::{BatchRef, Tracer};
use crate::ops::inspect::graph::as_set;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope;
use milepost_core::expr::template::text;
use milepost_core::model::event::Event;
use milepost_core::model::stage::{InputSource, Stage};
use milepost_core::model::step::{MergeStep, StepKind};
use milepost_core::plan::world::World;
use milepost_store::store::journal;
use serde_json::Value;

/// The table of corrections that a stage reads.
struct Table<'a> {
    file: FilePath,
    /// The field that several records share.
    shared_key: Option<&'a str>,
    rows: Vec<Value>,
    /// The line of each row.
    lines: Vec<u64>,
}

/// The records that a correction applies to: the column of the table, and its value.
struct CorrectedKey<'k> {
    column: &'k str,
    value: &'k str,
}

impl<'a> Tracer<'a> {
    /// Adds the corrections that a record has from the table of its stage.
    pub(super) fn add_corrections(
        &mut self,
        key: &str,
        record: &Value,
        maker: BatchRef<'a>,
        to: usize,
    ) {
        let notes = record.get("corrections").and_then(Value::as_array);
        let merge = self
            .declared(maker)
            .and_then(|stage| Some((stage, merge_of(stage)?)));
        let (Some(notes), Some((stage, merge))) = (notes, merge) else {
            return;
        };
        let table = self.table_of(stage, merge);
        for note in notes {
            let text = |name: &str| note.get(name).map(text).unwrap_or_default();
            let field = text("field");
            let target = table.as_ref().map(|table| table.target(key, note));
            let place = table.as_ref().zip(target.as_ref());
            let correction = TracedCorrection {
                from: note.get("from").cloned().unwrap_or_default(),
                to: note.get("to").cloned().unwrap_or_default(),
                who: text("who"),
                why: text("why"),
                line: place.and_then(|(table, target)| table.line(target, &field)),
                imported: place.and_then(|(table, target)| self.import_of(table, target, &field)),
                field,
            };
            let file = table
                .as_ref()
                .map(|table| self.check(&table.file, Some(maker)));
            self.add(Some(to), file, StationKind::Correction(correction));
        }
    }

    /// Reads the table of corrections; `None` if it is not a file of the workspace that can be read.
    fn table_of(&self, stage: &'a Stage, merge: &'a MergeStep) -> Option<Table<'a>> {
        let input = stage.input(merge.corrections.as_deref()?)?;
        let InputSource::Path(path) = &input.source else {
            return None;
        };
        let file: FilePath = as_set(self.opened, path).parse().ok()?;
        let reading = input.reading(&file);
        let content = self.opened.context().content(&file, &reading).ok()?;
        let source = self.opened.files.source(&file).ok()?;
        let lines = scope::lines(&*source, &reading).ok()?;
        let Value::Array(rows) = content else {
            return None;
        };
        Some(Table {
            file,
            shared_key: merge.shared_key.as_deref(),
            rows,
            lines,
        })
    }

    /// Returns the last import of a correction, as the journal has it.
    fn import_of(
        &self,
        table: &Table<'_>,
        target: &CorrectedKey<'_>,
        field: &str,
    ) -> Option<TracedImport> {
        let CorrectedKey { column, value } = target;
        let text = format!(": {field} of {column} {value} is ");
        let kind = [r#""kind":"corrections_imported""#.to_owned()];
        let mut found = None;
        let read = journal::read_with(&self.opened.workspace.layout, &kind, &mut |record| {
            if let Event::CorrectionsImported {
                file,
                into,
                corrections,
                ..
            } = record.event
                && into == table.file.to_string()
                && let Some(correction) = corrections.into_iter().find(|it| it.contains(&text))
            {
                found = Some(TracedImport {
                    workbook: file,
                    correction,
                    when: record.timestamp,
                });
            }
        });
        read.ok().and(found)
    }
}

impl Table<'_> {
    /// Returns what a correction names: the shared key if its note has one, else the key of the record.
    fn target<'k>(&'k self, key: &'k str, note: &'k Value) -> CorrectedKey<'k> {
        let shared = self.shared_key.and_then(|column| {
            let value = note.get(column)?.as_str()?;
            Some(CorrectedKey { column, value })
        });
        shared.unwrap_or_else(|| {
            let first = self.rows.first().and_then(Value::as_object);
            let column = first.and_then(|cells| cells.keys().next());
            CorrectedKey {
                column: column.map_or("", String::as_str),
                value: key,
            }
        })
    }

    /// Returns the line of a correction; `None` if the table has no such row any more.
    fn line(&self, target: &CorrectedKey<'_>, field: &str) -> Option<u64> {
        let has = |row: &Value, column: &str, text: &str| {
            row.get(column).and_then(Value::as_str) == Some(text)
        };
        let is_it = |row: &Value| has(row, target.column, target.value) && has(row, "field", field);
        let place = self.rows.iter().position(is_it)?;
        self.lines.get(place).copied()
    }
}

/// Returns the step of a stage that applies corrections.
fn merge_of(stage: &Stage) -> Option<&MergeStep> {
    stage.steps.iter().find_map(|step| match &step.kind {
        StepKind::Merge(merge) if merge.corrections.is_some() => Some(merge),
        _ => None,
    })
}
