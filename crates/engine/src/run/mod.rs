//! Runs: asks the schedule what is due, dispatches batches, and commits what they made.

pub mod agents;
pub mod batch;
pub mod check;
pub mod context;
pub mod engine;
pub mod error;
pub mod notice;
pub mod observe;
pub mod record;
pub mod report;
pub mod services;
pub mod stop;
pub mod world;

#[cfg(debug_assertions)]
pub use crate::steps::workbook::workbook_schema;
