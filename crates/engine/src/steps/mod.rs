//! The steps: what a stage does, one attempt of one batch each; no step knows the journal.

pub mod agent;
pub mod alarm;
pub mod attempt;
pub mod command;
pub mod files;
pub mod http;
pub mod jq;
pub mod merge;
pub mod pdf_text;
pub mod process;
mod records;
pub mod refine;
pub mod service;
pub mod split;
pub mod values;
pub mod wait;
pub mod work;
pub mod workbook;
