//! The kinds of step: each does one attempt of one batch, and knows no journal.

pub mod ifc;
//! Steps: one file or folder a kind of work.

pub mod pdf;
pub mod xlsx;
//! The steps: what a stage does, one attempt of one batch each; no step knows the journal.

pub mod command;
