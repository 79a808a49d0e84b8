//! Keeps a stage's progress file up to date while its batches run.

use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use crate::run::record::{finish, protect};
use milepost_core::model::checkpoint::ProgressStatus;
use milepost_core::model::stage::Stage;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::progress::ProgressFile;
use std::collections::BTreeSet;
use std::time::Duration;

/// The progress file of a running stage. A stage without `each` has none.
pub(crate) struct ProgressWriter<'a> {
    ctx: Context<'a>,
    stage: &'a Stage,
    file: Option<ProgressFile>,
    watch: Stopwatch,
}

impl<'a> ProgressWriter<'a> {
    /// Creates a writer whose first version is due at once.
    pub(crate) fn new(ctx: Context<'a>, stage: &'a Stage) -> Self {
        let path = protect::progress_path(stage);
        Self {
            ctx,
            stage,
            file: path.map(|path| ProgressFile::new(ctx.layout.at(path))),
            watch: Stopwatch::start(),
        }
    }

    /// Notes that a batch started, ended or was published.
    pub(crate) fn changed(&mut self) {
        if let Some(file) = &mut self.file {
            file.changed();
        }
    }

    /// Returns how long the dispatcher may wait until [`Self::write_if_due`] has something to write.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.file.as_ref()?.due_in(self.watch.elapsed())
    }

    /// Writes a version if one is due. `running` are the places of the batches that run.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn write_if_due(
        &mut self,
        recorder: &Recorder<'_>,
        found: &StageScan,
        running: &BTreeSet<usize>,
    ) -> Result<(), RunError> {
        let since = self.watch.elapsed();
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        if file.due_in(since) != Some(Duration::ZERO) {
            return Ok(());
        }
        let status = ProgressStatus::InProgress;
        let now = finish::progress_of(recorder, self.stage, found, running, status);
        file.write(self.ctx.disk, &now, since)?;
        file.cost(self.watch.elapsed().saturating_sub(since));
        Ok(())
    }
}
