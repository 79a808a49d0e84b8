//! The steps: what a stage does, one attempt of one batch each; no step knows the journal.

pub(crate) mod agent;
pub(crate) mod alarm;
pub(crate) mod attempt;
pub(crate) mod calls;
pub mod command;
pub(crate) mod files;
pub(crate) mod http;
mod iteration;
pub(crate) mod jq;
pub(crate) mod merge;
pub(crate) mod pdf_text;
pub(crate) mod process;
mod records;
pub(crate) mod refine;
pub(crate) mod service;
pub(crate) mod split;
pub(crate) mod values;
pub(crate) mod wait;
pub(crate) mod work;
pub mod workbook;
