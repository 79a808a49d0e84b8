//! The end of a stage: its status, progress file and checkpoint.

use crate::run::check::by_page::SHOWN;
use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use crate::run::record::{finish, protect};
use crate::run::report::{StageReport, StageStatus};
use milepost_core::base::path::FilePath;
use milepost_core::model::checkpoint::{ProgressStatus, Status};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{Phase, StageState};
use milepost_core::plan::scan::StageScan;
use milepost_core::plan::schedule::StageTotals;
use milepost_core::plan::selection::Selection;
use milepost_core::plan::world::World;
use milepost_store::store::layout;
use milepost_store::store::progress::{ProgressFile, is_by_hand};
use std::collections::BTreeSet;
use std::time::Duration;

/// A stage that ends.
pub(crate) struct Ending<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) stage: &'a Stage,
    pub(crate) found: &'a StageScan,
    /// The positions of batches whose outputs were found invalid in this run.
    pub(crate) invalid: &'a BTreeSet<usize>,
    /// How many events were recorded before it started.
    pub(crate) before: u64,
    /// The reason why a required agent is unavailable; no batch ran in that case.
    pub(crate) unavailable: Option<String>,
}

impl Ending<'_> {
    /// Ends the stage: its status, its progress file, its checkpoint.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn end(
        &self,
        recorder: &mut Recorder<'_>,
        report: &mut StageReport,
    ) -> Result<(), RunError> {
        let (stage, found) = (self.stage, self.found);
        if !self.invalid.is_empty() {
            // Invalid outputs that could not be rebuilt do not count as outputs.
            self.retire_failed(recorder, &|index| self.invalid.contains(&index))?;
        }
        let status = finish::status(recorder, stage, found);
        let tolerates = stage.policy.tolerates_failures();
        let ended = StageTotals {
            recorded: status,
            reads_partial: finish::takes_over_partial(recorder, stage),
            unavailable: self.unavailable.is_some(),
            left: report.left > 0,
            failed: !report.failed.is_empty(),
            tolerates: self.selection.options.keep_going || tolerates,
        };
        report.status = ended.status();
        report.failure =
            report.status == StageStatus::Failed || !tolerates && !report.failed.is_empty();
        let known = recorder.state.stages.get(&stage.name);
        let records = || {
            known
                .into_iter()
                .flat_map(|known| known.batches.values())
                .filter_map(|batch| batch.record.as_ref())
        };
        if let Some(input) = records().find_map(|record| record.stale.clone()) {
            report.why = Some(format!("`{input}` changed while it was read: run again"));
        }
        if self.unavailable.is_some() {
            report.why.clone_from(&self.unavailable);
        }
        let unread = || known.into_iter().flat_map(StageState::unread);
        report.verdict = records()
            .map(|record| record.verdict)
            .chain(unread().map(|totals| totals.verdict))
            .flatten()
            .reduce(|a, b| a && b);
        // Earlier outputs of a failed batch are not outputs of this run.
        let standing = known.into_iter().flat_map(|known| known.batches.values());
        report.elements = standing
            .filter(|batch| !matches!(batch.phase, Phase::Failed { .. }))
            .map(|batch| batch.record.as_ref()?.elements)
            .chain(unread().map(|totals| totals.elements))
            .flatten()
            .reduce(|a, b| a + b);
        let first = known.map_or_else(Vec::new, |known| known.first(SHOWN));
        report.outputs = first
            .into_iter()
            .filter_map(|(_, batch)| batch.record.as_ref())
            .flat_map(|record| &record.outputs)
            .map(|made| made.path.to_string())
            .filter(|path| path.starts_with("outputs/"))
            .take(20)
            .collect();
        let ctx = recorder.ctx;
        let changed = recorder.counted() != self.before;
        let path = ctx.layout.checkpoint(stage.number);
        let write_checkpoint = match report.status {
            StageStatus::Complete | StageStatus::Partial => {
                changed
                    || known.is_none_or(|known| known.status.is_none())
                    || !path.exists()
                    || self.checkpoint_differs(recorder)?
            }
            _ => false,
        };
        if report.status == StageStatus::Partial && changed {
            self.retire_failed(recorder, &|_| true)?;
        }
        report.checkpoint_rewritten = write_checkpoint && !changed;
        // The up-to-date check notes the file (`up_to_date::note_state`).
        let progress = protect::progress_path(stage);
        let is_damaged = progress.is_some_and(|path| is_by_hand(&ctx.layout.at(path)));
        if changed || write_checkpoint || is_damaged {
            self.progress(recorder, report.status)?;
        }
        if write_checkpoint {
            let status = if report.status == StageStatus::Complete {
                Status::Complete
            } else {
                Status::Partial
            };
            finish::checkpoint(recorder, stage, found, status)?;
        }
        Ok(())
    }

    fn checkpoint_differs(&self, recorder: &Recorder<'_>) -> Result<bool, RunError> {
        let stage = self.stage;
        let path = FilePath::workspace(layout::checkpoint(stage.number));
        let there = recorder.ctx.digest(&path).map_err(RunError::World)?;
        Ok(recorder.state.checkpoints.get(&stage.name).copied() != there)
    }

    /// Retires the earlier outputs of failed batches, because later stages must not read them.
    fn retire_failed(
        &self,
        recorder: &mut Recorder<'_>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<(), RunError> {
        let (stage, found) = (self.stage, self.found);
        let known = recorder.state.stages.get(&stage.name);
        let keys: Vec<String> = found
            .batches
            .iter()
            .enumerate()
            .filter(|(index, _)| wanted(*index))
            .map(|(_, found)| found)
            .filter(|found| {
                known
                    .and_then(|known| known.batches.get(&found.batch.key))
                    .is_some_and(|batch| {
                        matches!(batch.phase, Phase::Failed { .. }) && batch.record.is_some()
                    })
            })
            .map(|found| found.batch.key.clone())
            .collect();
        retire::batches(recorder, &stage.name, &keys, retire::Cause::Failed)
    }

    fn progress(&self, recorder: &mut Recorder<'_>, status: StageStatus) -> Result<(), RunError> {
        let (stage, found) = (self.stage, self.found);
        let Some(path) = protect::progress_path(stage) else {
            return Ok(());
        };
        let status = match status {
            StageStatus::Complete => ProgressStatus::Complete,
            StageStatus::Partial => ProgressStatus::Partial,
            StageStatus::Failed => ProgressStatus::Failed,
            StageStatus::Held | StageStatus::Blocked | StageStatus::Modified => {
                ProgressStatus::Held
            }
        };
        let now = finish::progress_of(recorder, stage, found, &BTreeSet::new(), status);
        protect::put_progress_away(recorder, stage)?;
        let ctx = recorder.ctx;
        ProgressFile::new(ctx.layout.at(path)).write(ctx.disk, &now, Duration::ZERO)?;
        ctx.asked.replaced(path, None, false);
        Ok(())
    }
}
