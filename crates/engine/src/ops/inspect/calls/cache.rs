//! The recorded calls of a workspace without their texts, kept in memory until a file of them changes.

use crate::ops::inspect::calls::{Refused, SpentByStage, refused, spending_of};
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::model::call::Spent;
use milepost_store::store::calls::{self, CallFileStamp, CallRecord};
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::journal::{self, Position};
use milepost_store::store::layout::Layout;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much rarer than its own time reading the calls for their cost is repeated: a run appends to their file all the time.
const PAUSE: u32 = 100;

/// Calls that were read.
#[derive(Default)]
pub(crate) struct CallCache(Mutex<Option<Kept>>);

struct Kept {
    stamps: Vec<CallFileStamp>,
    /// The end of the journal, which has the violations in answers.
    journal: Option<Position>,
    calls: Arc<KnownCalls>,
    age: Stopwatch,
    took: Duration,
}

/// All calls of a workspace.
pub(crate) struct KnownCalls {
    /// The calls without the texts of their answers, the newest first.
    pub(crate) calls: Vec<CallRecord>,
    /// The records that cannot be read.
    pub(crate) unreadable: Vec<String>,
    /// The cost by stage.
    pub(crate) stages: BTreeMap<String, Spent>,
    /// The violations in answers.
    pub(crate) refused: Refused,
}

impl CallCache {
    /// Returns the calls of a workspace; while a run appends to them, as they were a short time ago.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn read(
        &self,
        layout: &Layout,
        is_running: bool,
    ) -> Result<Arc<KnownCalls>, OpsError> {
        self.read_since(layout, if is_running { PAUSE } else { 0 })
    }

    /// Returns the spending of the workspace and its stages as it was a short time ago; `None` if no agent was called and no limit is
    /// declared.
    ///
    /// # Errors
    /// When the calls cannot be read.
    pub(crate) fn spending(&self, opened: &OpenProject) -> Result<Option<SpentByStage>, OpsError> {
        let known = self.read_since(&opened.workspace.layout, PAUSE)?;
        let money = spending_of(opened, known.stages.values(), known.unreadable.clone());
        Ok(money.map(|money| (money, known.stages.clone())))
    }

    /// Returns the calls as they are, or as they were read not longer ago than `pause` times what that took.
    fn read_since(&self, layout: &Layout, pause: u32) -> Result<Arc<KnownCalls>, OpsError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = &layout.calls();
        let shown = folder.display();
        let stamps = calls::stamps(folder).map_err(OpsError::unreadable(&shown))?;
        let journal = journal::written(layout)?;
        let is_recent = |kept: &&Kept| {
            (&kept.stamps, kept.journal) == (&stamps, journal)
                || kept.age.elapsed() < kept.took * pause
        };
        if let Some(kept) = kept.as_ref().filter(is_recent) {
            return Ok(Arc::clone(&kept.calls));
        }
        let watch = Stopwatch::start();
        let (mut calls, broken) =
            calls::read_without_text(folder).map_err(OpsError::unreadable(&shown))?;
        calls.sort_by(|a, b| (b.when, &b.run, b.number).cmp(&(a.when, &a.run, a.number)));
        let calls = Arc::new(KnownCalls {
            stages: calls::by_stage(&calls),
            refused: if calls.is_empty() {
                Refused::new()
            } else {
                refused(layout)
            },
            calls,
            unreadable: broken.iter().map(ToString::to_string).collect(),
        });
        *kept = Some(Kept {
            stamps,
            journal,
            calls: Arc::clone(&calls),
            age: Stopwatch::start(),
            took: watch.elapsed(),
        });
        Ok(calls)
    }
}
