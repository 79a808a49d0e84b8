//! Writes pages of a stage's manifest while the stage runs, and drops the records on them. Until the run seals the journal, the journal
//! has them too.

use crate::run::check::by_page::SHOWN;
use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use milepost_core::base::natural::natural;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::BatchState;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::manifest::EarlyManifest;
use std::cmp::Ordering;

/// The pages of a running stage.
pub(crate) struct EarlyPages<'a> {
    stage: &'a Stage,
    /// `None` if the manifest is written at the end.
    manifest: Option<EarlyManifest>,
}

impl<'a> EarlyPages<'a> {
    /// Begins the manifest of a stage that has no record yet and whose batches run in the order of its pages. Another is written at
    /// the end.
    ///
    /// # Errors
    /// When the folder of the manifest cannot be read.
    pub(crate) fn new(
        recorder: &Recorder<'_>,
        stage: &'a Stage,
        found: &StageScan,
    ) -> Result<Self, RunError> {
        let known = recorder.state.stages.get(&stage.name);
        let mut recorded = known.into_iter().flat_map(|known| known.batches.values());
        let is_new = recorded.all(|batch| *batch == BatchState::default());
        let mut pairs = found.ahead.windows(2);
        let is_in_order = pairs.all(|pair| natural(pair[0].key(), pair[1].key()) == Ordering::Less);
        let manifest = if is_new && is_in_order {
            EarlyManifest::begin(recorder.ctx.layout, &stage.name)?
        } else {
            None
        };
        Ok(Self { stage, manifest })
    }

    /// Writes full pages, and with `is_last` the rest. Pages with files that the checkpoint names, or with a batch that is not settled,
    /// keep their records.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn write(
        &mut self,
        recorder: &mut Recorder<'_>,
        is_last: bool,
    ) -> Result<(), RunError> {
        let Some(manifest) = &mut self.manifest else {
            return Ok(());
        };
        recorder.flush()?;
        let disk = recorder.ctx.disk;
        let Some(known) = recorder.state.stages.get_mut(&self.stage.name) else {
            return Ok(());
        };
        let Some(written) = manifest.write(disk, known, is_last)? else {
            self.manifest = None;
            return Ok(());
        };
        for mut early in written {
            let totals = &early.page.totals;
            let before: u64 = known.pages.iter().map(|page| page.totals.batches).sum();
            let is_named = before < SHOWN as u64 || totals.files < 2;
            early.page.is_read = is_named || !totals.settled;
            if !early.page.is_read {
                for key in &early.keys {
                    known.batches.remove(key);
                }
            }
            known.pages.push(early.page);
        }
        Ok(())
    }
}
