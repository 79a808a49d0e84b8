//! Runs: follows the schedule, dispatches batches, and commits their outputs.

pub(crate) mod agents;
pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod context;
pub(crate) mod engine;
pub(crate) mod error;
pub mod expected;
pub mod notice;
pub(crate) mod observe;
pub mod record;
pub(crate) mod remote;
pub mod report;
pub(crate) mod services;
pub(crate) mod slices;
pub mod stop;
pub(crate) mod world;

pub(crate) use crate::steps::cancel::CancelToken;
pub(crate) use crate::steps::diff::{
    ChangeKind, Comparer, RecordChange, Totals, compare as compare_records,
};
pub(crate) use crate::steps::records::Records;
pub(crate) use crate::steps::workbook::{
    ReviewSheet, SheetRows, WorkbookError, declared_columns, file_feed, read_review,
    read_workbook_row, review_sheets,
};
pub(crate) use crate::steps::worker::JqWorkers;

#[cfg(debug_assertions)]
pub(crate) use crate::steps::workbook::workbook_schema;
