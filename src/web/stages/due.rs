//! The batches of a stage that are not up to date, and why: also those that no run has started.

use crate::view;
use milepost_engine::ops::why::StageWhy;
use serde::Serialize;

/// The most batches that are listed.
const LISTED: usize = 100;

/// Batches that are not up to date.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct DueBatches {
    /// All of them.
    total: u64,
    /// Those whose name contains the text of the filter.
    matching: u64,
    rows: Vec<DueBatch>,
}

/// A batch that is not up to date.
#[derive(Debug, PartialEq, Serialize)]
struct DueBatch {
    batch: String,
    /// The decision of a run, then a line for each reason.
    decision: String,
}

impl DueBatches {
    /// Returns the batches whose name contains a text; `None` if all batches are up to date.
    pub(super) fn of(why: &StageWhy, text: Option<&str>) -> Option<Self> {
        let text = text.unwrap_or_default().to_lowercase();
        let all = why.others.iter();
        let found = all.filter(|one| one.batch.to_lowercase().contains(&text));
        let rows = found.clone().take(LISTED).map(|one| DueBatch {
            batch: one.batch.clone(),
            decision: view::why::decision(&one.verdict).trim_end().to_owned(),
        });
        (!why.others.is_empty()).then(|| Self {
            total: why.others.len() as u64,
            matching: found.clone().count() as u64,
            rows: rows.collect(),
        })
    }
}
