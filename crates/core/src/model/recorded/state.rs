//! The state of a workspace: the sum of its manifests and its journal.

use super::approval::ApprovedStage;
pub use super::batch_state::{BatchState, Phase};
use super::checkpoint::Status;
use super::event::{Child, Publish};
use super::forced::Forced;
use super::record::BatchRecord;
use crate::base::digest::Digest;
use crate::base::natural::natural;
use crate::base::path::RelPath;
use crate::model::fingerprint::Facts;
use crate::model::totals::{BatchTotals, KeyNumbers};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of a workspace. Only `plan::machine::apply` changes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// Stages by name.
    pub stages: BTreeMap<String, StageState>,
    /// Files published since the last barrier.
    pub unsettled: Vec<Unsettled>,
    /// Files moved to quarantine since the last barrier: their paths before and after.
    pub retiring: BTreeMap<RelPath, RelPath>,
    /// Programs that the last run started and that may still run.
    pub children: Vec<Child>,
    /// The last run, if it has not recorded its end.
    pub open_run: Option<String>,
    /// Digests of the checkpoints as they were written, by stage.
    pub checkpoints: BTreeMap<String, Digest>,
    /// Batches of runs with `--force` that are not rebuilt yet, by run. A batch belongs to at most one of them.
    pub forced: Vec<Forced>,
    /// The last approval of each stage that was approved.
    pub approvals: BTreeMap<String, ApprovedStage>,
}

impl State {
    /// Returns true if a person approved this batch of the stage with these facts, and the stage is not complete yet.
    pub fn is_approved(&self, stage: &str, batch: &str, facts: &str) -> bool {
        let approved = self.approvals.get(stage);
        approved
            .and_then(|approved| approved.open.get(batch))
            .is_some_and(|known| known == facts)
    }

    /// Returns the run with `--force` that selected this batch, if it is not rebuilt yet.
    pub fn forced(&self, stage: &str, batch: &str) -> Option<&Forced> {
        self.forced.iter().find(|forced| forced.has(stage, batch))
    }

    /// Returns the runs whose answers count for this batch; `None` if every kept answer counts.
    pub fn asked_since(&self, stage: &str, batch: &str) -> Option<&[String]> {
        let is_new = || {
            let known = self.stages.get(stage);
            known
                .and_then(|known| known.batches.get(batch))
                .is_none_or(|known| known.record.is_none())
        };
        let of_batch = self.forced(stage, batch);
        let of_stage = || {
            let mut all = self.forced.iter().rev();
            all.find(|forced| forced.open.contains(stage))
                .filter(|_| is_new())
        };
        let forced = of_batch.or_else(of_stage)?;
        (!forced.runs.is_empty()).then_some(forced.runs.as_slice())
    }
}

/// Files of a batch that may not be in place yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsettled {
    pub stage: String,
    pub batch: String,
    pub files: Vec<Publish>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageState {
    /// The declared number of the stage when it last ran.
    pub number: u32,
    /// Batches by key.
    pub batches: BTreeMap<String, BatchState>,
    /// The sets of facts that batches share, by id.
    pub facts: BTreeMap<String, Arc<Facts>>,
    /// The status in its checkpoint, if there is one.
    pub status: Option<Status>,
    /// The pages of its manifest, if not all were read: `batches` lacks those of the others. Empty if it has all.
    pub pages: Vec<ManifestPage>,
}

/// A page of a stage's manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManifestPage {
    /// The number in its name.
    pub number: u64,
    /// The key of its first batch.
    pub first: String,
    /// The digest of the file.
    pub digest: Digest,
    pub totals: BatchTotals,
    /// True if its batches were read.
    #[serde(skip)]
    pub is_read: bool,
}

impl StageState {
    /// Returns the number of its batches, read or not.
    pub fn count(&self) -> u64 {
        self.batches.len() as u64 + self.unread().map(|totals| totals.batches).sum::<u64>()
    }

    /// Returns the totals of the pages that were not read.
    pub fn unread(&self) -> impl Iterator<Item = &BatchTotals> {
        let unread = self.pages.iter().filter(|page| !page.is_read);
        unread.map(|page| &page.totals)
    }

    /// Returns the batches that were read, in natural order of their keys.
    pub fn in_order(&self) -> Vec<(&str, &BatchState)> {
        self.first(usize::MAX)
    }

    /// Returns the first of the batches that were read, in natural order of their keys.
    pub fn first(&self, most: usize) -> Vec<(&str, &BatchState)> {
        let batches = self.batches.iter();
        let mut first: Vec<_> = batches.map(|(key, batch)| (key.as_str(), batch)).collect();
        if most < first.len() {
            first.select_nth_unstable_by(most, |(a, _), (b, _)| natural(a, b));
            first.truncate(most);
        }
        first.sort_by(|(a, _), (b, _)| natural(a, b));
        first
    }

    /// Returns the place of the page that a batch with this key is on.
    pub fn page_of(&self, key: &str) -> Option<usize> {
        let is_after = |page: &ManifestPage| natural(&page.first, key) == Ordering::Greater;
        self.pages
            .partition_point(|page| !is_after(page))
            .checked_sub(1)
    }

    /// Returns the numbers of the batches that were not read and of the wanted others, in natural order of the keys: the number
    /// in the key, otherwise the position.
    pub fn numbers(&self, is_wanted: &dyn Fn(&BatchState) -> bool) -> Vec<u64> {
        let mut all = Vec::new();
        let mut position = 0;
        let mut add = |numbers: KeyNumbers, is_listed: bool| {
            let (listed, count) = match numbers {
                KeyNumbers::Range(first, last) => (first..=last, last - first + 1),
                KeyNumbers::Without(count) => (position + 1..=position + count, count),
            };
            position += count;
            if is_listed {
                all.extend(listed);
            }
        };
        let mut read = self.in_order().into_iter().peekable();
        for place in 0..self.pages.len().max(1) {
            match self.pages.get(place).filter(|page| !page.is_read) {
                Some(page) => {
                    let numbers = page.totals.numbers.iter();
                    numbers.for_each(|numbers| add(*numbers, true));
                }
                None => {
                    let is_here =
                        |key: &str| self.page_of(key).is_none_or(|of_key| of_key == place);
                    while let Some((key, batch)) = read.next_if(|(key, _)| is_here(key)) {
                        add(KeyNumbers::of(key), is_wanted(batch));
                    }
                }
            }
        }
        // While the stage runs, batches after the last page are on none.
        for (key, batch) in read {
            add(KeyNumbers::of(key), is_wanted(batch));
        }
        all
    }

    /// Returns the totals of all batches, read or not, without the digest of their inputs.
    pub fn totals(&self) -> BatchTotals {
        let sorted = self.in_order();
        let by_page = sorted.chunk_by(|(a, _), (b, _)| self.page_of(a) == self.page_of(b));
        let mut pages: BTreeMap<Option<usize>, BatchTotals> = by_page
            .filter_map(|batches| {
                let (key, _) = batches.first()?;
                let totals = BatchTotals::of(batches.iter().copied());
                Some((self.page_of(key), totals))
            })
            .collect();
        for (place, page) in self.pages.iter().enumerate() {
            if !page.is_read {
                let after = pages.remove(&Some(place));
                let both = std::iter::once(&page.totals).chain(&after);
                pages.insert(Some(place), BatchTotals::of_pages(both));
            }
        }
        BatchTotals {
            inputs: None,
            ..BatchTotals::of_pages(pages.values())
        }
    }

    /// Returns the files that its batches made.
    pub(crate) fn files(&self) -> impl Iterator<Item = &RelPath> {
        self.batches.values().flat_map(BatchState::files)
    }

    /// Returns the id of all facts of a record.
    pub fn facts_id(&self, record: &BatchRecord) -> String {
        format!("{}{}", record.shared, record.facts.id())
    }

    /// Returns the facts that a record shares with others of its stage.
    pub fn shared(&self, record: &BatchRecord) -> Arc<Facts> {
        self.facts.get(&record.shared).cloned().unwrap_or_default()
    }

    /// Returns the recorded outputs of the stage, each with its batch.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &super::record::Made)> {
        self.batches.iter().flat_map(|(key, batch)| {
            let made = batch.record.iter().flat_map(|record| record.outputs.iter());
            made.map(move |made| (key.as_str(), made))
        })
    }
}
