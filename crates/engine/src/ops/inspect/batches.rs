//! The batches of a stage as a table: filtered, sorted, and a page of them, from the state that is kept in memory.

use crate::ops::inspect::live::Live;
use crate::ops::project::error::OpsError;
use jiff::Timestamp;
use milepost_core::base::natural::natural;
use milepost_core::model::call::Spent;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::state::{BatchState, Phase, StageState};
use milepost_store::store::id::made_at;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The rows of a page.
pub const PAGE: usize = 100;

/// The rows from which those of the first page are selected at once.
const CANDIDATES: usize = 4_096;

/// Which batches of a stage to return, and in which order.
#[derive(Debug, Clone, Default)]
pub struct BatchQuery {
    /// The only batch to return.
    pub name: Option<String>,
    /// Text that the name contains, in upper or lower case.
    pub text: Option<String>,
    /// The status; `None` for all.
    pub status: Option<BatchStatus>,
    /// The order.
    pub order: BatchOrder,
    /// True for the opposite order. Rows without the value are last in both.
    pub descending: bool,
    /// The page, from 1. A page after the last one is the last one.
    pub page: u64,
}

/// The status of a batch in one word, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// It failed, or it is built without elements that failed.
    Failed,
    /// A run builds it now.
    Running,
    /// A run waits before it tries again.
    Retrying,
    /// It was begun, and has no outputs.
    Unfinished,
    /// It is built.
    Complete,
}

/// By what batches are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchOrder {
    /// By name, numbers in names by their values.
    #[default]
    Name,
    /// By status, failures first.
    Status,
    /// By the run that built them.
    Run,
    /// By the duration of the last attempt.
    Duration,
    /// By the cost of calls.
    Cost,
    /// By the number of elements.
    Elements,
    /// By the number of attempts.
    Attempts,
}

/// A page of the batches of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchPage {
    /// All batches that are known.
    pub totals: BatchTotals,
    /// The number of batches that the query selects.
    pub matching: u64,
    /// The page, from 1.
    pub page: u64,
    /// The number of pages, at least 1.
    pub pages: u64,
    /// The batches of the page.
    pub rows: Vec<BatchRow>,
}

/// The number and cost of the batches that runs have begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BatchTotals {
    /// All of them.
    pub known: u64,
    /// Built batches.
    pub complete: u64,
    /// Failed batches, and those that are built without elements that failed.
    pub failed: u64,
    /// Batches that a run builds now, or will try again.
    pub running: u64,
    /// Batches that were begun and have no outputs.
    pub unfinished: u64,
    /// The elements in their outputs.
    pub elements: u64,
    /// The sum of their durations in milliseconds.
    pub duration_ms: u64,
}

/// A batch in a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRow {
    /// The batch; empty for the only one.
    pub batch: String,
    /// The status.
    pub status: BatchStatus,
    /// The error code and message of the failure.
    pub failure: Option<String>,
    /// True if outputs were modified by hand and accepted.
    pub is_modified: bool,
    /// The number of attempts.
    pub attempts: Option<u32>,
    /// The duration of the last attempt in seconds.
    pub seconds: Option<f64>,
    /// The number of elements in the outputs.
    pub elements: Option<u64>,
    /// The cost of its calls.
    pub spent: Option<Spent>,
    /// The run that built it.
    pub run: Option<String>,
    /// The start of this run, in UTC.
    pub when: Option<Timestamp>,
}

type Known<'a> = (&'a str, &'a BatchState);

impl Live {
    /// Returns a page of the batches of a stage that runs have begun. A stage has further batches if a run was stopped before them.
    ///
    /// # Errors
    /// When the stage is not declared, the declarations are wrong, or the workspace cannot be read.
    pub fn batches(&self, stage: &str, query: &BatchQuery) -> Result<BatchPage, OpsError> {
        self.with_state(|opened, state, is_running| {
            let stage = opened.stage(stage)?;
            let nothing = StageState::default();
            let known = state.stages.get(&stage.name).unwrap_or(&nothing);
            Ok(page_of(known, is_running, query))
        })?
    }
}

fn page_of(stage: &StageState, is_running: bool, query: &BatchQuery) -> BatchPage {
    let mut totals = BatchTotals::default();
    let text = query.text.as_ref().map(|text| text.to_lowercase());
    let order = |a: &Known<'_>, b: &Known<'_>| compare(*a, *b, query, is_running);
    let (mut found, mut matching): (Vec<Known<'_>>, usize) = (Vec::new(), 0);
    // The last row of the first page so far: on that page, rows after it need no place.
    let mut last: Option<Known<'_>> = None;
    for (key, batch) in &stage.batches {
        let status = status(batch, is_running);
        totals.add(batch, status);
        let has_text = |text: &String| contains(key, text);
        if query.name.as_ref().is_some_and(|name| name != key) {
            continue;
        }
        if query.status.is_some_and(|wanted| wanted != status)
            || !text.as_ref().is_none_or(has_text)
        {
            continue;
        }
        matching += 1;
        let row = (key.as_str(), batch);
        if last.is_some_and(|last| order(&row, &last).is_gt()) {
            continue;
        }
        found.push(row);
        if query.page <= 1 && found.len() == CANDIDATES {
            last = slice(&mut found, 0, &order).last().copied();
            found.truncate(PAGE);
        }
    }
    let pages = matching.div_ceil(PAGE).max(1);
    let page = usize::try_from(query.page)
        .unwrap_or(usize::MAX)
        .clamp(1, pages);
    let rows = slice(&mut found, (page - 1) * PAGE, &order);
    BatchPage {
        totals,
        matching: matching as u64,
        page: page as u64,
        pages: pages as u64,
        rows: rows
            .iter()
            .map(|(key, batch)| row(key, batch, is_running))
            .collect(),
    }
}

/// Returns true if a name contains a text that is in lower case.
fn contains(name: &str, text: &str) -> bool {
    if !name.is_ascii() {
        return name.to_lowercase().contains(text);
    }
    let text = text.as_bytes();
    let mut parts = name.as_bytes().windows(text.len().max(1));
    text.is_empty() || parts.any(|part| part.eq_ignore_ascii_case(text))
}

/// Returns the rows of the page that starts at a position, in order. Rows of other pages are not sorted.
fn slice<'a, T>(rows: &'a mut [T], start: usize, order: &impl Fn(&T, &T) -> Ordering) -> &'a [T] {
    if start >= rows.len() {
        return &[];
    }
    if start > 0 {
        rows.select_nth_unstable_by(start, order);
    }
    let rest = &mut rows[start..];
    if rest.len() > PAGE {
        rest.select_nth_unstable_by(PAGE, order);
    }
    let end = rest.len().min(PAGE);
    let page = &mut rest[..end];
    page.sort_unstable_by(order);
    page
}

fn status(batch: &BatchState, is_running: bool) -> BatchStatus {
    let has_failure =
        |record: &BatchRecord| record.placeholder.is_some() || !record.failed.is_empty();
    match (&batch.phase, &batch.record) {
        (Phase::Running { .. }, _) if is_running => BatchStatus::Running,
        (Phase::Backoff { .. }, _) if is_running => BatchStatus::Retrying,
        _ if batch.last_failure().is_some() => BatchStatus::Failed,
        (_, Some(record)) if has_failure(record) => BatchStatus::Failed,
        (_, Some(_)) => BatchStatus::Complete,
        (_, None) => BatchStatus::Unfinished,
    }
}

/// Returns the record of the present outputs. Earlier outputs of a failed batch do not count.
fn record(batch: &BatchState) -> Option<&BatchRecord> {
    let is_failed = batch.last_failure().is_some();
    batch.record.as_ref().filter(|_| !is_failed)
}

fn compare(a: Known<'_>, b: Known<'_>, query: &BatchQuery, is_running: bool) -> Ordering {
    let of = |pick: fn(&BatchRecord) -> Option<u64>| {
        let value = |batch: &BatchState| record(batch).and_then(pick);
        absent_last(value(a.1), value(b.1), query.descending)
    };
    let by_name = || {
        let order = natural(a.0, b.0);
        if query.descending && query.order == BatchOrder::Name {
            order.reverse()
        } else {
            order
        }
    };
    let first = match query.order {
        BatchOrder::Name => Ordering::Equal,
        BatchOrder::Status => absent_last(
            Some(status(a.1, is_running)),
            Some(status(b.1, is_running)),
            query.descending,
        ),
        BatchOrder::Run => {
            let run = |batch| record(batch).map(|record| record.run.as_str());
            absent_last(run(a.1), run(b.1), query.descending)
        }
        BatchOrder::Duration => of(|record| Some(record.duration_ms)),
        BatchOrder::Cost => of(|record| Some(record.spent.as_ref()?.cost.0)),
        BatchOrder::Elements => of(|record| record.elements),
        BatchOrder::Attempts => of(|record| Some(u64::from(record.attempts))),
    };
    first.then_with(by_name)
}

fn absent_last<T: Ord>(a: Option<T>, b: Option<T>, descending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if descending => b.cmp(&a),
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn row(key: &str, batch: &BatchState, is_running: bool) -> BatchRow {
    let made = record(batch);
    let failure = match batch.last_failure() {
        Some(outcome) => Some(outcome.to_string()),
        None => made.and_then(|record| record.failure().map(|outcome| outcome.to_string())),
    };
    BatchRow {
        batch: key.to_owned(),
        status: status(batch, is_running),
        failure,
        is_modified: made.is_some_and(|record| record.pin.is_some()),
        attempts: made.map(|record| record.attempts),
        seconds: made.map(|record| record.duration_ms as f64 / 1000.0),
        elements: made.and_then(|record| record.elements),
        spent: made.and_then(|record| record.spent.as_deref().copied()),
        run: made.map(|record| record.run.clone()),
        when: made.and_then(|record| made_at(&record.run)),
    }
}

impl BatchTotals {
    fn add(&mut self, batch: &BatchState, status: BatchStatus) {
        self.known += 1;
        match status {
            BatchStatus::Failed => self.failed += 1,
            BatchStatus::Running | BatchStatus::Retrying => self.running += 1,
            BatchStatus::Unfinished => self.unfinished += 1,
            BatchStatus::Complete => self.complete += 1,
        }
        if let Some(record) = record(batch) {
            self.elements += record.elements.unwrap_or_default();
            self.duration_ms += record.duration_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::model::money::NanoUsd;
    use milepost_core::model::outcome::{Outcome, OutcomeKind};
    use milepost_core::model::record::FailedKeys;

    fn made(duration_ms: u64, cost: Option<u64>) -> BatchState {
        let spent = cost.map(|cost| Spent {
            calls: 1,
            cost: NanoUsd(cost),
            ..Spent::default()
        });
        BatchState {
            phase: Phase::Complete,
            record: Some(BatchRecord {
                elements: Some(2),
                attempts: 1,
                duration_ms,
                spent: spent.map(Box::new),
                run: "01KAK2Y0000000000000000000".to_owned(),
                ..BatchRecord::default()
            }),
            ..BatchState::default()
        }
    }

    fn outcome() -> Outcome {
        Outcome::new(OutcomeKind::Exit, "exit code 1".to_owned())
    }

    fn failed() -> BatchState {
        BatchState {
            phase: Phase::Failed {
                outcome: Box::new(outcome()),
            },
            ..made(9_000, Some(9))
        }
    }

    /// Returns a stage of 250 batches: the third failed, the fourth is built without an element, the fifth runs.
    fn stage() -> StageState {
        let mut stage = StageState::default();
        for number in 1..=250_u64 {
            let cost = (number % 2 == 0).then_some(number);
            stage
                .batches
                .insert(format!("batch_{number}"), made(number, cost));
        }
        let partly = stage.batches.get_mut("batch_4").unwrap();
        partly.record.as_mut().unwrap().failed = vec![FailedKeys {
            keys: vec!["k".to_owned()],
            outcome: outcome(),
        }];
        stage.batches.insert("batch_3".to_owned(), failed());
        let running = BatchState {
            phase: Phase::Running { attempt: 1 },
            ..BatchState::default()
        };
        stage.batches.insert("batch_5".to_owned(), running);
        stage
    }

    fn names(page: &BatchPage) -> Vec<&str> {
        page.rows.iter().map(|row| row.batch.as_str()).collect()
    }

    #[test]
    fn a_page_has_a_hundred_batches_in_the_order_of_people() {
        let stage = stage();
        let page = page_of(&stage, true, &BatchQuery::default());
        let totals = BatchTotals {
            known: 250,
            complete: 247,
            failed: 2,
            running: 1,
            unfinished: 0,
            elements: 496,
            duration_ms: 31_375 - 3 - 5,
        };
        assert_eq!((page.totals, page.matching), (totals, 250));
        assert_eq!((page.page, page.pages, page.rows.len()), (1, 3, 100));
        assert_eq!(names(&page)[..3], ["batch_1", "batch_2", "batch_3"]);
        assert_eq!(names(&page)[99], "batch_100");
        let query = |page| BatchQuery {
            page,
            ..BatchQuery::default()
        };
        let second = page_of(&stage, true, &query(2));
        assert_eq!((names(&second)[0], second.page), ("batch_101", 2));
        let last = page_of(&stage, true, &query(u64::MAX));
        assert_eq!((names(&last)[0], last.rows.len()), ("batch_201", 50));
    }

    #[test]
    fn the_first_page_of_very_many_batches_is_that_of_all_in_order() {
        let mut stage = StageState::default();
        for number in 0..20_000_u64 {
            let name = format!("Maße_{}", number * 7_919 % 20_000);
            stage.batches.insert(name, made(number * 31 % 1_000, None));
        }
        for (order, descending) in [
            (BatchOrder::Name, false),
            (BatchOrder::Name, true),
            (BatchOrder::Duration, true),
        ] {
            let query = BatchQuery {
                order,
                descending,
                text: Some("MAßE".to_owned()),
                ..BatchQuery::default()
            };
            let mut all: Vec<Known<'_>> =
                stage.batches.iter().map(|(k, b)| (k.as_str(), b)).collect();
            all.sort_by(|a, b| compare(*a, *b, &query, false));
            let all: Vec<&str> = all.iter().map(|(key, _)| *key).collect();
            let first = page_of(&stage, false, &query);
            assert_eq!((first.matching, first.pages), (20_000, 200));
            assert_eq!(names(&first), all[..100]);
            let last = BatchQuery { page: 200, ..query };
            assert_eq!(names(&page_of(&stage, false, &last)), all[19_900..]);
        }
        assert!(contains("Batch_7", "") && contains("Batch_7", "ch_7"));
        assert!(!contains("Batch_7", "batch_77"));
    }

    #[test]
    fn batches_are_filtered_and_sorted_by_every_column() {
        let stage = stage();
        let first = |order, descending| {
            let query = BatchQuery {
                order,
                descending,
                ..BatchQuery::default()
            };
            names(&page_of(&stage, true, &query))[..3].join(" ")
        };
        assert_eq!(
            first(BatchOrder::Name, true),
            "batch_250 batch_249 batch_248"
        );
        assert_eq!(first(BatchOrder::Status, false), "batch_3 batch_4 batch_5");
        assert_eq!(
            first(BatchOrder::Duration, true),
            "batch_250 batch_249 batch_248"
        );
        // Without a cost, a batch is after all that have one.
        assert_eq!(first(BatchOrder::Cost, false), "batch_2 batch_4 batch_6");
        assert_eq!(
            first(BatchOrder::Cost, true),
            "batch_250 batch_248 batch_246"
        );
        let found = |text: &str, status| {
            let query = BatchQuery {
                text: Some(text.to_owned()),
                status,
                ..BatchQuery::default()
            };
            let page = page_of(&stage, false, &query);
            (page.matching, names(&page).join(" "))
        };
        assert_eq!(
            found("ATCH_24", Some(BatchStatus::Failed)),
            (0, String::new())
        );
        assert_eq!(found("batch_111", None), (1, "batch_111".to_owned()));
        // No run is in progress: the batch was begun, and ended without outputs.
        let unfinished = found("", Some(BatchStatus::Unfinished));
        assert_eq!(unfinished, (1, "batch_5".to_owned()));
    }

    #[test]
    fn a_row_tells_how_a_batch_was_built() {
        let stage = stage();
        let query = BatchQuery {
            text: Some("batch_3".to_owned()),
            ..BatchQuery::default()
        };
        let failed = &page_of(&stage, false, &query).rows[0];
        let expected = BatchRow {
            batch: "batch_3".to_owned(),
            status: BatchStatus::Failed,
            failure: Some(outcome().to_string()),
            is_modified: false,
            attempts: None,
            seconds: None,
            elements: None,
            spent: None,
            run: None,
            when: None,
        };
        assert_eq!(*failed, expected);
        let query = BatchQuery {
            text: Some("batch_20".to_owned()),
            ..BatchQuery::default()
        };
        let built = &page_of(&stage, false, &query).rows[0];
        let expected = BatchRow {
            batch: "batch_20".to_owned(),
            status: BatchStatus::Complete,
            failure: None,
            attempts: Some(1),
            seconds: Some(0.02),
            elements: Some(2),
            spent: Some(Spent {
                calls: 1,
                cost: NanoUsd(20),
                ..Spent::default()
            }),
            run: Some("01KAK2Y0000000000000000000".to_owned()),
            when: made_at("01KAK2Y0000000000000000000"),
            ..expected
        };
        assert_eq!(*built, expected);
    }
}
