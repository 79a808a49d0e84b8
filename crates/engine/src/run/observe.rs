//! Observes for the schedule: the disk by up-to-date checks, external agents by a dry run of the batches.

use crate::run::agents::estimate::CostEstimator;
use crate::run::check::batch_scanner::Keep;
use crate::run::check::scan::scan_batches;
use crate::run::context::Context;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::schedule::{Observe, ObserveError, PolicyOf, Waiting};
use milepost_core::plan::world::World as _;
use milepost_store::store::layout;

/// The disk and the agents, as the schedule observes them.
pub(crate) struct Observations<'a> {
    /// The workspace.
    pub(crate) ctx: Context<'a>,
    /// Finds batches that wait for an external agent; `None`: requests are not simulated.
    pub(crate) estimator: Option<&'a CostEstimator<'a>>,
    /// The batches whose details are kept.
    pub(crate) keep: Keep<'a>,
}

impl<'a> Observations<'a> {
    /// Observes what a run needs.
    pub(crate) fn new(ctx: Context<'a>, estimator: Option<&'a CostEstimator<'a>>) -> Self {
        Self {
            ctx,
            estimator,
            keep: Keep::Undone,
        }
    }
}

impl Observe for Observations<'_> {
    fn scan(
        &self,
        stage: &Stage,
        state: &State,
        pending: &Pending,
        policy: &PolicyOf<'_>,
    ) -> Result<StageScan, ObserveError> {
        Ok(scan_batches(
            &self.ctx, stage, state, pending, policy, self.keep,
        )?)
    }

    fn scan_outdated(&self, stage: &Stage, state: &State) -> Result<StageScan, ObserveError> {
        let keep = match self.keep {
            Keep::Undone | Keep::Slices => Keep::OnlyUndone,
            keep => keep,
        };
        let needed = |_: &str| RebuildPolicy::Needed;
        let pending = Pending::default();
        Ok(scan_batches(
            &self.ctx, stage, state, &pending, &needed, keep,
        )?)
    }

    fn checkpoint(&self, stage: &Stage) -> Result<Option<(RelPath, Digest)>, ObserveError> {
        let path = layout::checkpoint(stage.number);
        let there = self.ctx.digest(&FilePath::workspace(path.clone()))?;
        Ok(there.map(|there| (path, there)))
    }

    fn external(&self, stage: &Stage) -> Vec<String> {
        self.estimator
            .map_or_else(Vec::new, |estimator| estimator.outside(stage))
    }

    fn unpaid(&self, stage: &Stage) -> Result<Option<String>, ObserveError> {
        let why = self.estimator.map(|estimator| estimator.unpaid(stage));
        Ok(why.transpose()?.flatten())
    }

    fn waiting(
        &self,
        stage: &Stage,
        batches: &[&BatchScan],
        settled: bool,
    ) -> Result<Vec<Option<Waiting>>, ObserveError> {
        match self.estimator {
            Some(estimator) => Ok(estimator.waiting(stage, batches, settled)?),
            None => Ok(batches.iter().map(|_| None).collect()),
        }
    }
}
