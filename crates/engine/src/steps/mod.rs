//! The step kinds. A step works for one attempt of one batch and never writes the journal.

pub(crate) mod agent;
pub(crate) mod attempt;
pub(crate) mod batch_context;
pub(crate) mod calls;
pub(crate) mod cancel;
pub mod command;
pub mod diff;
pub(crate) mod files;
pub(crate) mod http;
mod iteration;
pub(crate) mod jq;
pub(crate) mod merge;
pub(crate) mod pdf_text;
pub(crate) mod process;
pub(crate) mod records;
pub(crate) mod refine;
pub(crate) mod service;
pub(crate) mod split;
pub(crate) mod values;
pub(crate) mod wait;
pub mod workbook;
pub mod worker;
